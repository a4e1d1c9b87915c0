import { expect, test } from 'vitest';
import { parseMachineConfig } from '../../machineconfig/parse-machine-config.ts';
import { everything, machineObjects } from '../../test/fixtures/capi/machine-objects.ts';
import { type PartKey, partKey } from './machine-parts.ts';
import { machineConfigOf, ownedParts } from './owned-config.ts';
import { machinePartsOf } from './parts-of.ts';

const parts = machinePartsOf(
  machineObjects({
    machine: { version: 'v1.35.1' },
    bootstrap: {
      files: [
        { path: '/etc/motd', content: 'hello\n', owner: 'root:users', permissions: '0600' },
        { path: '/etc/issue', content: 'a' },
        { path: '/etc/token', contentFrom: { secret: { name: 'a', key: 'b' } } },
      ],
      ntp: { servers: ['a.example', 'b.example'] },
      users: [{ name: 'core', sshAuthorizedKeys: ['ssh-ed25519 A a'] }],
    },
    infrastructure: { image: 'v1.35.1' },
  }),
  everything,
);
const all = new Set([
  partKey({ kind: 'file', path: '/etc/motd' }),
  partKey({ kind: 'file', path: '/etc/token' }),
  partKey({ kind: 'file', path: '/etc/gone' }),
  partKey({ kind: 'ntp' }),
  partKey({ kind: 'keys', user: 'core' }),
  partKey({ kind: 'version' }),
  partKey({ kind: 'image' }),
]);

test('a MachineConfig has the owned parts that can be written, and no other', () => {
  const config = machineConfigOf(parts, all, 'worker');
  expect(config?.metadata).toEqual({
    name: '50-cluster-api-worker',
    labels: { 'machineconfiguration.openshift.io/role': 'worker' },
  });
  expect(config?.spec.osImageURL).toBe('registry.example/os:v1.35.1');
  expect(config?.spec.config).toMatchObject({
    passwd: { users: [{ name: 'core', sshAuthorizedKeys: ['ssh-ed25519 A a'] }] },
    storage: {
      files: [
        { path: '/etc/chrony.conf', mode: 0o644 },
        {
          path: '/etc/motd',
          mode: 0o600,
          group: { name: 'users' },
          contents: { source: 'data:;base64,aGVsbG8K' },
        },
      ],
    },
  });
  expect(config && parseMachineConfig(config).problems).toEqual([]);
});

test('it tells which parts it has', () => {
  expect([...ownedParts(machineConfigOf(parts, all, 'worker'), everything)].toSorted()).toEqual([
    'file /etc/motd',
    'image',
    'keys core',
    'ntp',
  ]);
  expect(ownedParts(undefined, everything)).toEqual(new Set());
});

test.each<[string, ReadonlySet<PartKey>]>([
  ['nothing is owned', new Set()],
  ['only the version is owned', new Set([partKey({ kind: 'version' })])],
  ['what is owned is gone from the template', new Set([partKey({ kind: 'file', path: '/etc/gone' })])],
])('there is none where %s', (_what, owned) => {
  expect(machineConfigOf(parts, owned, 'worker')).toBeUndefined();
});

test.each<[string, string | undefined]>([
  [
    '/etc/chrony/chrony.conf',
    'server a iburst\ndriftfile /var/lib/chrony/drift\nmakestep 1.0 3\nrtcsync\nlogdir /var/log/chrony\n',
  ],
  ['/etc/chrony/sources.d/a.sources', 'server a iburst\n'],
  ['/etc/systemd/timesyncd.conf.d/a.conf', '[Time]\nNTP=a\n'],
  ['/etc/systemd/timesyncd.conf', '[Time]\nNTP=a\n'],
  ['/etc/ntp.conf', undefined],
])('the file %s has the servers in its own format', (ntpFile, text) => {
  const { ntp } = machinePartsOf(machineObjects({ bootstrap: { ntp: { servers: ['a'] } } }), {
    ...everything,
    ntpFile,
  });
  expect(ntp?.kind === 'writable' ? Buffer.from(ntp.value.content, 'base64').toString() : undefined).toBe(
    text,
  );
});
