import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { layeredFiles } from '../../../machineconfig/layered-files.ts';
import { emptyNodeConfig, type NodeConfig, type NodeLink } from '../../../machineconfig/node-config.ts';
import { readTreeEntry } from '../../files/tree-entry.ts';
import { type ManagedContent, desiredTree as treeOf, UnknownAccountError } from './desired-tree.ts';

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const byName = { user: { name: 'app' }, group: { name: 'app' } };
const byId = { user: { id: 7 }, group: { id: 8 } };
const unknown = { user: { name: 'nobody-here' }, group: { id: 0 } };

let root: string;
beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'shale-desired-'));
  onTestFinished(() => rm(root, { recursive: true }));
  for (const directory of ['etc', 'usr/lib']) await mkdir(path.join(root, directory), { recursive: true });
  await writeFile(path.join(root, 'usr/lib/passwd'), 'app:x:100:101::/var/app:/bin/sh\nos:x:5:6::/os:\n');
  await writeFile(path.join(root, 'usr/lib/group'), 'app:x:102:\n');
  await writeFile(path.join(root, 'etc/passwd'), 'app:x:200:201::/home/app:/bin/sh\nbad:x:no:1::/bad:\n\n');
  await writeFile(path.join(root, 'etc/group'), 'users:x:300:\nbad:x:no:\n');
});

const desiredTree = (
  target: { readonly root: string },
  config: NodeConfig,
  delivery: ManagedContent['delivery'] = 'Standard',
) => treeOf(target, { delivery, config });

type Owners = Pick<NodeLink, 'user' | 'group'>;

function config(given: {
  readonly file?: Owners & { readonly path: string };
  readonly directory?: Owners & { readonly path: string };
  readonly links?: readonly NodeLink[];
  readonly sshKeys?: NodeConfig['sshKeys'];
}): NodeConfig {
  const { file, directory, links = [], sshKeys = new Map() } = given;
  return {
    ...emptyNodeConfig,
    files: new Map(
      file === undefined ? [] : [[file.path, { mode: 0o640, contents: Buffer.from('text'), ...file }]],
    ),
    directories: new Map(directory === undefined ? [] : [[directory.path, { mode: 0o750, ...directory }]]),
    links: new Map(links.map((link) => [link.path, link])),
    sshKeys,
  };
}

describe('owners', () => {
  test.each<[string, Owners, { readonly uid: number; readonly gid: number }]>([
    ['by number', byId, { uid: 7, gid: 8 }],
    ['by names, where the one of /etc comes first', byName, { uid: 200, gid: 102 }],
    ['of the system and of /etc', { user: { name: 'os' }, group: { name: 'users' } }, { uid: 5, gid: 300 }],
  ])('%s are those that the tree itself has', async (_what, owners, ids) => {
    const tree = await desiredTree(
      { root },
      config({ file: { path: '/etc/f', ...owners }, directory: { path: '/etc/d', ...owners } }),
    );
    expect(tree.get('/etc/f')?.entry).toEqual({ kind: 'file', mode: 0o640, sha256: sha256('text'), ...ids });
    expect(tree.get('/etc/d')?.entry).toEqual({ kind: 'directory', mode: 0o750, ...ids });
    expect(tree.get('/etc/d')?.unknownOwner).toBeUndefined();
  });

  test.each<[Owners, string]>([
    [unknown, '/etc/f: user nobody-here is neither in /etc/passwd nor in /usr/lib/passwd of the node'],
    [
      { user: { id: 0 }, group: { name: 'nobody-here' } },
      '/etc/f: group nobody-here is neither in /etc/group nor in /usr/lib/group of the node',
    ],
    [{ user: { name: 'bad' }, group: { id: 0 } }, '/etc/f: user bad is neither'],
    [{ user: { id: 0 }, group: { name: 'bad' } }, '/etc/f: group bad is neither'],
  ])('that the tree lacks are refused in standard mode: %j', async (owners, message) => {
    const file = { path: '/etc/f', ...owners };
    const refused = expect(desiredTree({ root }, config({ file }))).rejects;
    await refused.toThrow(UnknownAccountError);
    await expect(desiredTree({ root }, config({ directory: file }))).rejects.toThrow(message);
  });

  test('that the tree lacks are reported in layered mode, beside what the image has', async () => {
    const tree = await desiredTree(
      { root },
      config({
        file: { path: '/etc/f', user: { id: 7 }, group: { name: 'nobody-here' } },
        directory: { path: '/var/lib/d', ...unknown },
      }),
      'Layered',
    );
    expect(tree.get('/etc/f')).toMatchObject({
      entry: { uid: 7, gid: 0 },
      unknownOwner: expect.stringContaining('group nobody-here'),
    });
    expect(tree.get('/var/lib/d')).toMatchObject({
      entry: { uid: 0, gid: 0 },
      unknownOwner: expect.stringContaining('user nobody-here'),
    });
  });

  test('of a link are the same in both modes, wherever it lies', async () => {
    const links = ['/etc/l', '/var/l'].map((at) => ({ path: at, target: 't', hard: false, ...byId }));
    const layered = await desiredTree({ root }, config({ links }), 'Layered');
    expect(layered.get('/etc/l')?.entry).toEqual({ kind: 'symlink', target: 't', uid: 7, gid: 8 });
    expect(layered.get('/var/l')?.entry).toEqual({ kind: 'symlink', target: 't', uid: 7, gid: 8 });
    const standard = await desiredTree({ root }, config({ links }));
    expect(standard.get('/var/l')?.entry).toEqual({ kind: 'symlink', target: 't', uid: 7, gid: 8 });
  });
});

test('a link of an image has the numbers of its owner, whom the base knew', async () => {
  const link = (at: string, owned: Owners) => ({ path: at, target: 't', hard: false, ...owned });
  const links = [link('/etc/known', byName), link('/etc/unknown', unknown)];
  const tree = await desiredTree({ root }, config({ links }), 'Layered');
  expect(tree.get('/etc/known')?.entry).toMatchObject({ uid: 200, gid: 102 });
  expect(tree.get('/etc/unknown')?.unknownOwner).toContain('user nobody-here');
});

describe('a hard link', () => {
  const hard = (target: string): NodeLink => ({ path: '/etc/hard', target, hard: true, ...byId });

  test('is as the file of the config that it shares', async () => {
    const given = config({ file: { path: '/etc/f', ...byId }, links: [hard('/etc/f')] });
    const tree = await desiredTree({ root }, given);
    expect(tree.get('/etc/hard')).toMatchObject({
      entry: tree.get('/etc/f')?.entry,
      hardLinkTo: '/etc/f',
    });
  });

  test('is as the file of the node that it shares, found by the links of the node', async () => {
    await symlink('lib', path.join(root, 'usr/alias'));
    const tree = await desiredTree({ root }, config({ links: [hard('/usr/alias/group')] }));
    expect(tree.get('/etc/hard')?.entry).toEqual(await readTreeEntry(path.join(root, 'usr/lib/group')));
  });

  test.each(['/usr/lib/none', '/usr/none/file'])('to what does not exist (%s) has no entry', async (at) => {
    const tree = await desiredTree({ root }, config({ links: [hard(at)] }));
    expect(tree.get('/etc/hard')).toMatchObject({ entry: undefined, hardLinkTo: at });
  });
});

test('keys are files of the users that the node has, in a directory of theirs', async () => {
  const sshKeys = new Map([
    ['app', ['ssh-ed25519 A', 'ssh-ed25519 B']],
    ['nobody-here', ['ssh-ed25519 C']],
  ]);
  const tree = await desiredTree({ root }, config({ sshKeys }));
  const owner = { uid: 200, gid: 201 };
  expect([...tree]).toEqual([
    [
      '/home/app/.ssh/authorized_keys.d/ignition',
      {
        entry: {
          kind: 'file',
          mode: 0o600,
          sha256: sha256('ssh-ed25519 A\nssh-ed25519 B\n'),
          ...owner,
        },
        contents: Buffer.from('ssh-ed25519 A\nssh-ed25519 B\n'),
        parents: { mode: 0o700, ...owner },
      },
    ],
  ]);
});

test('a tree without accounts has none', async () => {
  await rm(path.join(root, 'etc'), { recursive: true });
  await rm(path.join(root, 'usr'), { recursive: true });
  await expect(desiredTree({ root }, config({ file: { path: '/etc/f', ...byName } }))).rejects.toThrow(
    'user app is neither',
  );
});

test('units, drop-ins and links lie where systemd looks for them in standard mode', async () => {
  const system = path.join(root, 'usr/lib/systemd/system');
  await mkdir(system, { recursive: true });
  const install = '[Install]\nWantedBy=multi-user.target\n';
  await writeFile(path.join(system, 'os.service'), install);
  const unit = { masked: false, dropins: new Map<string, string>() };
  const units = new Map([
    ['own.service', { ...unit, name: 'own.service', contents: install, enabled: true }],
    [
      'os.service',
      { ...unit, name: 'os.service', enabled: false, dropins: new Map([['10-a.conf', '[Unit]\n']]) },
    ],
  ]);
  const tree = await desiredTree({ root }, { ...emptyNodeConfig, units });
  const file = (text: string) => ({ kind: 'file', mode: 0o644, uid: 0, gid: 0, sha256: sha256(text) });
  const parents = { mode: 0o755, uid: 0, gid: 0 };
  expect(tree.get('/etc/systemd/system/own.service')?.entry).toEqual(file(install));
  expect(tree.get('/etc/systemd/system/os.service.d/10-a.conf')?.entry).toEqual(file('[Unit]\n'));
  const wants = '/etc/systemd/system/multi-user.target.wants';
  expect(tree.get(`${wants}/own.service`)).toMatchObject({
    entry: { kind: 'symlink', uid: 0, gid: 0 },
    parents,
  });
  expect(tree.get(`${wants}/os.service`)).toEqual({ entry: undefined, parents });
});

test('an image’s group that the node does not know is root’s there', async () => {
  const file = { path: '/etc/f', user: { name: 'nobody-here' }, group: { id: 8 } };
  const tree = await desiredTree({ root }, config({ file }), 'Layered');
  expect(tree.get('/etc/f')?.entry).toMatchObject({ uid: 0, gid: 8 });
});

test('units, keys and kernel arguments lie where an image carries them', async () => {
  const carried: NodeConfig = {
    ...config({ sshKeys: new Map([['app', ['ssh-ed25519 A']]]) }),
    units: new Map([
      [
        'own.service',
        {
          name: 'own.service',
          contents: '[Service]\nExecStart=/bin/true\n',
          enabled: true,
          masked: false,
          dropins: new Map(),
        },
      ],
    ]),
    kernelArguments: ['quiet'],
  };
  const tree = await desiredTree({ root }, carried, 'Layered');
  const texts = layeredFiles(carried);
  expect(texts.size).toBeGreaterThan(2);
  for (const [name, text] of texts) {
    const entry = { kind: 'file', mode: 0o644, uid: 0, gid: 0, sha256: sha256(text) };
    expect([name, tree.get(name)?.entry]).toEqual([name, entry]);
  }
  expect([...tree.keys()].filter((name) => name.startsWith('/home'))).toEqual([]);
});
