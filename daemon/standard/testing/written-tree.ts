import { chmod, mkdir, mkdtemp, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { configOf, fileOf, unitsOf } from '../../../disruption/testing/configs.ts';
import type { NodeConfig } from '../../../machineconfig/node-config.ts';
import { chpasswd } from '../../host/chpasswd.ts';
import { noLabels } from '../../host/selinux-labels.ts';
import { osCommandRunner } from '../../os/os-command.ts';
import { readTree } from '../../tree/read-tree.ts';
import { contentDigest } from '../../tree/tree-entry.ts';
import { readPasswordFields, SHADOW } from '../passwords.ts';
import type { WriteTarget } from '../write-config.ts';

const UNIT = '[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n';

/** A config with something of everything. */
export const first: NodeConfig = configOf(
  { '/etc/app/own.conf': 'one', '/etc/stock.conf': 'ours', '/etc/admin.conf': 'ours', '/home/core/x': 'x' },
  {
    name: 'first',
    directories: new Map([
      ['/etc/dir', { path: '/etc/dir', mode: 0o750, user: { id: 0 }, group: { name: 'core' } }],
    ]),
    links: new Map([
      ['/etc/link', { path: '/etc/link', target: 'app', hard: false, user: { id: 0 }, group: { id: 0 } }],
    ]),
    units: unitsOf(
      { name: 'own.service', contents: UNIT, enabled: true },
      { name: 'os.service', enabled: false, dropins: new Map([['10-x.conf', '[Service]\nNice=1\n']]) },
    ),
    sshKeys: new Map([['core', ['ssh-ed25519 A']]]),
    passwordHashes: new Map([
      ['core', '$6$first'],
      ['nobody-here', '$6$x'],
    ]),
  },
);

/** A config that changes, drops and adds; a file becomes a directory. */
export const second: NodeConfig = configOf(
  {},
  {
    name: 'second',
    files: new Map(
      [
        fileOf('/etc/app/own.conf', 'two', { mode: 0o600, user: { name: 'core' } }),
        fileOf('/etc/link/below', 'was a link'),
        fileOf('/var/new/deep/file', 'new'),
      ].map((file) => [file.path, file]),
    ),
    units: unitsOf({ name: 'own.service', masked: true }, { name: 'os.service', enabled: true }),
    sshKeys: new Map([['core', ['ssh-ed25519 B']]]),
    passwordHashes: new Map([
      ['core', '$6$second'],
      ['root', '$6$root'],
    ]),
  },
);

/** @param parent of the new root. @returns a new root as ostree lays it out, with a stock file, an admin's, and an OS unit that is enabled. */
export async function createTree(parent = tmpdir()): Promise<WriteTarget> {
  const root = await mkdtemp(path.join(parent, 'shale-standard-'));
  const at = (name: string) => path.join(root, name);
  const wants = 'etc/systemd/system/multi-user.target.wants';
  for (const directory of ['var/home/core', 'usr/etc', 'usr/lib/systemd/system', wants]) {
    await mkdir(at(directory), { recursive: true });
  }
  await symlink('var/home', at('home'));
  await writeFile(at('etc/passwd'), 'root:x:0:0::/root:/bin/sh\ncore:x:1000:1000::/home/core:/bin/sh\n');
  await writeFile(at('etc/shadow'), 'root:*:20000:0:99999:7:::\ncore:*:20000:0:99999:7:::\n', {
    mode: 0o600,
  });
  await writeFile(at('etc/group'), 'core:x:1000:\n');
  await writeFile(at('usr/etc/stock.conf'), 'stock');
  await writeFile(at('etc/stock.conf'), 'stock');
  await writeFile(at('etc/admin.conf'), 'admin');
  await chmod(at('etc/admin.conf'), 0o640);
  await writeFile(at('usr/lib/systemd/system/os.service'), UNIT);
  await symlink('/usr/lib/systemd/system/os.service', at(`${wants}/os.service`));
  return {
    root,
    stateDir: at('var/lib/shale'),
    setPasswords: chpasswd(osCommandRunner()),
    relabel: noLabels,
  };
}

/** Of the password file the fields are compared: chpasswd(8) notes the day of a change, and keeps a copy and a lock beside it. */
const PASSWORD_FILES: ReadonlySet<string> = new Set([SHADOW, '/etc/shadow-', '/etc/.pwd.lock']);

/** @returns everything in the tree but the daemon's own records. */
export async function snapshot({ root }: WriteTarget): Promise<readonly string[]> {
  const tree = await readTree(root, '/', AbortSignal.timeout(30_000));
  const passwords = [...(await readPasswordFields(root))].map((entry) => entry.join(' has password '));
  const entries = [...tree]
    .filter(([name]) => !PASSWORD_FILES.has(name) && name !== '/var/lib' && !name.startsWith('/var/lib/'))
    .map(([name, entry]) => `${name} ${contentDigest(entry)}`)
    .sort();
  return [...passwords, ...entries];
}
