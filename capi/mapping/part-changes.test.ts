import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { everything, machineObjects } from '../../test/fixtures/capi/machine-objects.ts';
import type { JsonObject } from '../contract/machine-objects.ts';
import { readMachineSettings } from '../contract/settings.ts';
import { partKey } from './machine-parts.ts';
import { changedParts } from './part-changes.ts';
import { machinePartsOf } from './parts-of.ts';

type Objects = Parameters<typeof machineObjects>[0];

function changes(before: Objects, after: Objects, settings = everything) {
  const { taken, refused } = changedParts(
    machinePartsOf(machineObjects(before), settings),
    machinePartsOf(machineObjects(after), settings),
  );
  return { taken: taken.map(partKey), refused: refused.map(({ field, why }) => `${field}: ${why}`) };
}

const motd = { path: '/etc/motd', content: 'hello\n' };
const files = (...entries: readonly JsonObject[]) => ({ bootstrap: { files: entries } });
const core = (more: JsonObject) => ({ bootstrap: { users: [{ name: 'core', ...more }] } });

test.each<[string, Objects, Objects, readonly string[]]>([
  ['nothing', files(motd), files(motd), []],
  ['a new file', {}, files(motd), ['file /etc/motd']],
  ['content', files(motd), files({ ...motd, content: 'bye\n' }), ['file /etc/motd']],
  ['permissions', files(motd), files({ ...motd, permissions: '0600' }), ['file /etc/motd']],
  ['an owner', files(motd), files({ ...motd, owner: 'chrony:chrony' }), ['file /etc/motd']],
  [
    'defaults that were implied',
    files(motd),
    files({ ...motd, permissions: '0644', owner: 'root:root' }),
    [],
  ],
  ['an order of files', files(motd, { path: '/etc/issue' }), files({ path: '/etc/issue' }, motd), []],
  [
    'a last line break, which cloud-init writes in any case',
    files(motd),
    files({ ...motd, content: 'hello' }),
    [],
  ],
  ['line breaks after the last one', files(motd), files({ ...motd, content: 'hello\n\n' }), []],
  [
    'no last line break, in base64',
    files(motd),
    files({ ...motd, encoding: 'base64', content: Buffer.from('hello').toString('base64') }),
    ['file /etc/motd'],
  ],
  [
    'an encoding of the same content',
    files(motd),
    files({ ...motd, encoding: 'gzip+base64', content: gzipSync('hello\n').toString('base64') }),
    [],
  ],
  [
    'base64 with line breaks',
    files(motd),
    files({ ...motd, encoding: 'base64', content: 'aGVs\nbG8K\n' }),
    [],
  ],
  [
    'a Secret that becomes content',
    files({ path: '/etc/motd', contentFrom: {} }),
    files(motd),
    ['file /etc/motd'],
  ],
  [
    'what only looks like a template of cloud-init, in base64',
    files(motd),
    files({ ...motd, encoding: 'base64', content: Buffer.from('{{ a }}\n').toString('base64') }),
    ['file /etc/motd'],
  ],
  [
    'what only looks like a template of cloud-init, for Ignition',
    { bootstrap: { files: [motd], format: 'ignition' } },
    { bootstrap: { files: [{ ...motd, content: '{{ a }}\n' }], format: 'ignition' } },
    ['file /etc/motd'],
  ],
  ['servers', {}, { bootstrap: { ntp: { servers: ['a.example'] } } }, ['ntp']],
  ['a key', core({}), core({ sshAuthorizedKeys: ['ssh-ed25519 A a'] }), ['keys core']],
  [
    'an order of keys',
    core({ sshAuthorizedKeys: ['ssh-ed25519 A a', 'ssh-ed25519 B b'] }),
    core({ sshAuthorizedKeys: ['ssh-ed25519 B b', 'ssh-ed25519 A a'] }),
    [],
  ],
  ['a version', {}, { machine: { version: 'v1.35.1' } }, ['version']],
  ['an image', { infrastructure: { image: 'v1' } }, { infrastructure: { image: 'v2' } }, ['image']],
  [
    'what Cluster API does not compare',
    {},
    { machine: { minReadySeconds: 5, deletion: { nodeDrainTimeoutSeconds: 9 }, taints: [] } },
    [],
  ],
])('is changed in place: %s', (_what, before, after, taken) => {
  expect(changes(before, after)).toEqual({ taken, refused: [] });
});

const REST = 'Shale can not change it on a machine';
const STAYS = 'what the machine came with can not be taken away in place';
const KEY_STAYS = 'a key that was removed would stay in ~/.ssh/authorized_keys, where cloud-init wrote it';
const JINJA = 'it has {{, {% or {#, which cloud-init replaces on each machine';
const key = 'KubeadmConfig spec.users[core].sshAuthorizedKeys';
const ofMotd = (why: string) => `KubeadmConfig spec.files[/etc/motd]: ${why}`;
const ofNtp = (why: string) => `KubeadmConfig spec.ntp: ${why}`;

test.each<[string, Objects, Objects, string]>([
  ['a file that is gone', files(motd), {}, ofMotd(STAYS)],
  [
    'carriage returns',
    {},
    files({ ...motd, content: 'a\r\n' }),
    ofMotd('its content has carriage returns, which get lost in cloud-config; use base64'),
  ],
  [
    'appending',
    {},
    files({ ...motd, append: true }),
    ofMotd('appending twice is not appending once; name the whole content'),
  ],
  [
    'a Secret',
    files(motd),
    files({ path: '/etc/motd', contentFrom: { secret: { name: 'a', key: 'b' } } }),
    ofMotd('its content comes from a Secret, and no secret may be in an image'),
  ],
  [
    'a template of cloud-init',
    files(motd),
    files({ ...motd, content: 'I am {{ ds.meta_data.local_hostname }}\n' }),
    ofMotd(JINJA),
  ],
  ['a comment of such a template', {}, files({ ...motd, content: 'echo {#names[@]}\n' }), ofMotd(JINJA)],
  [
    'a key that is such a template',
    core({}),
    core({ sshAuthorizedKeys: ['ssh-ed25519 A {{ ds.meta_data.local_hostname }}'] }),
    `${key}: ${JINJA}`,
  ],
  [
    'a template',
    {},
    files({ ...motd, contentFormat: 'Template' }),
    ofMotd('only Cluster API renders contents of the format Template'),
  ],
  [
    'a field of a later release',
    {},
    files({ ...motd, defer: true }),
    ofMotd('it has a field or value that Shale does not know (defer)'),
  ],
  [
    'values of another type',
    {},
    files({ ...motd, permissions: 644, owner: ['root'] }),
    ofMotd('it has a field or value that Shale does not know (owner, permissions)'),
  ],
  [
    'two entries of one path',
    files(motd),
    files(motd, { ...motd, content: 'bye\n' }),
    ofMotd('several entries name this path, and their order decides'),
  ],
  [
    'an owner by number',
    {},
    files({ ...motd, owner: '0:0' }),
    ofMotd('its owner is not of the form user:group, by names'),
  ],
  [
    'permissions that are none',
    {},
    files({ ...motd, permissions: 'u=rw' }),
    ofMotd('its permissions are not an octal number such as 0644'),
  ],
  [
    'broken base64',
    {},
    files({ ...motd, encoding: 'base64', content: 'a!' }),
    ofMotd('its content is not base64'),
  ],
  [
    'gzip as text',
    {},
    files({ ...motd, encoding: 'gzip', content: 'hello' }),
    ofMotd('its content can not be decompressed: incorrect header check'),
  ],
  [
    'a path upwards',
    {},
    files({ path: '/etc/../motd' }),
    'KubeadmConfig spec.files[/etc/../motd]: its path is not absolute, or has empty, "." or ".." elements',
  ],
  [
    'time that is switched off',
    {},
    { bootstrap: { ntp: { enabled: false, servers: ['a'] } } },
    ofNtp('Shale does not disable services; name that unit in a MachineConfig'),
  ],
  ['no servers', {}, { bootstrap: { ntp: { enabled: true } } }, ofNtp('it names no server')],
  [
    'a directive as a server',
    {},
    { bootstrap: { ntp: { servers: ['a.example\ncmdport 323'] } } },
    ofNtp('a server is neither a name nor an address'),
  ],
  ['servers that are gone', { bootstrap: { ntp: { servers: ['a'] } } }, {}, ofNtp(STAYS)],
  [
    'servers and their file',
    files({ path: '/etc/chrony.conf' }),
    { bootstrap: { files: [{ path: '/etc/chrony.conf' }], ntp: { servers: ['a'] } } },
    ofNtp('spec.files has /etc/chrony.conf, too, which the setting ntpFile names'),
  ],
  [
    'a key that is gone',
    core({ sshAuthorizedKeys: ['ssh-ed25519 A a', 'ssh-ed25519 B b'] }),
    core({ sshAuthorizedKeys: ['ssh-ed25519 A a'] }),
    `${key}: ${KEY_STAYS}`,
  ],
  [
    'two keys in one',
    core({}),
    core({ sshAuthorizedKeys: ['ssh-ed25519 A a\nssh-ed25519 B b'] }),
    `${key}: a key is not one line of authorized_keys`,
  ],
  ['a shell', core({}), core({ shell: '/bin/sh' }), `KubeadmConfig spec.users[core]: ${REST}`],
  [
    'keys of another user',
    { bootstrap: { users: [{ name: 'eve' }] } },
    { bootstrap: { users: [{ name: 'eve', sshAuthorizedKeys: ['ssh-ed25519 A a'] }] } },
    `KubeadmConfig spec.users[eve]: ${REST}`,
  ],
  [
    'commands',
    {},
    { bootstrap: { preKubeadmCommands: ['a'] } },
    `KubeadmConfig spec.preKubeadmCommands: ${REST}`,
  ],
  ['mounts', {}, { bootstrap: { mounts: [['a', 'b']] } }, `KubeadmConfig spec.mounts: ${REST}`],
  ['a failure domain', {}, { machine: { failureDomain: 'b' } }, `Machine spec.failureDomain: ${REST}`],
  ['a size', {}, { infrastructure: { size: 'xl' } }, `DevMachine spec.size: ${REST}`],
  [
    'an image of another repository',
    { infrastructure: { image: 'v1' } },
    { infrastructure: { image: 'other.example/os:v1' } },
    'the image of the infrastructure machine: it is neither a tag nor a sha256 digest of registry.example/os',
  ],
])('needs a new machine: %s', (_what, before, after, refused) => {
  expect(changes(before, after)).toEqual({ taken: [], refused: [refused] });
});

const none = readMachineSettings({});
test.each<[string, Objects, Objects, string]>([
  [
    'servers',
    {},
    { bootstrap: { ntp: { servers: ['a'] } } },
    ofNtp('the ExtensionConfig has no setting ntpFile that names the file of the servers'),
  ],
  [
    'an image',
    { infrastructure: { image: 'v1' } },
    { infrastructure: { image: 'v2' } },
    `DevMachine spec.image: ${REST}`,
  ],
])('needs a new machine without the setting: %s', (_what, before, after, refused) => {
  expect(changes(before, after, none)).toEqual({ taken: [], refused: [refused] });
});

test('no field of a bootstrap config that is not kubeadm is taken over', () => {
  const of = (content: string) => ({
    ...machineObjects(),
    bootstrap: { kind: 'OtherConfig', spec: { files: [{ path: '/etc/motd', content }] } },
  });
  const { taken, refused } = changedParts(
    machinePartsOf(of('a'), everything),
    machinePartsOf(of('b'), everything),
  );
  expect({ taken, refused }).toEqual({
    taken: [],
    refused: [{ field: 'OtherConfig spec.files', why: REST }],
  });
});

test('a machine without a bootstrap config differs from one that has it', () => {
  const without = { ...machineObjects(), bootstrap: undefined };
  const { refused } = changedParts(
    machinePartsOf(machineObjects(), everything),
    machinePartsOf(without, everything),
  );
  expect(refused.map(({ field }) => field)).toEqual([
    'KubeadmConfig spec.joinConfiguration',
    'the kind of the bootstrap config',
  ]);
});

test('files that expand to more than a config may have together need a new machine', () => {
  const content = gzipSync(Buffer.alloc(15 * 1024 * 1024)).toString('base64');
  const all = Array.from({ length: 6 }, (_, at) => ({
    path: `/etc/${at}`,
    encoding: 'gzip+base64',
    content,
  }));
  const { taken, refused } = changes({}, files(...all));
  expect(taken).toHaveLength(4);
  expect(refused).toHaveLength(2);
  expect(refused[0]).toMatch(/^KubeadmConfig spec.files\[\/etc\/4\]: its content can not be decompressed/);
});
