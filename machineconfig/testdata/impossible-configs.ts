import type { MachineConfig } from '../../api/machine-config.ts';
import { ignition, machineConfig } from './build.ts';

/** Two MachineConfigs that are valid one by one, and that no node can have together. */
export interface ImpossibleConfigs {
  readonly what: string;
  readonly configs: readonly [MachineConfig, MachineConfig];
}

type Section = Readonly<Record<string, unknown>>;

const file = (path: string, more: Section = {}): Section => ({
  storage: { files: [{ path, contents: { source: 'data:,a' }, ...more }] },
});
const directory = (path: string): Section => ({ storage: { directories: [{ path }] } });
const link = (path: string, target: string, hard = false): Section => ({
  storage: { links: [{ path, target, hard }] },
});
const unit = (name: string, more: Section): Section => ({ systemd: { units: [{ name, ...more }] } });
const keys: Section = { passwd: { users: [{ name: 'core', sshAuthorizedKeys: ['ssh-ed25519 AAAA a'] }] } };
const dropin = unit('foo.service', { dropins: [{ name: '10.conf', contents: '[Service]\n' }] });
const text = '[Service]\nExecStart=/bin/true\n';
const installed = `${text}[Install]\nWantedBy=multi-user.target\n`;
const foo = unit('foo.service', { contents: installed, enabled: true });
const units = '/etc/systemd/system';

const cases: readonly (readonly [what: string, one: Section, other: Section])[] = [
  ['a file below a file', file('/home/core/test'), file('/home/core/test/test')],
  ['a file far below a file', file('/etc/a'), file('/etc/a/b/c/d')],
  ['a directory below a file', file('/etc/a'), directory('/etc/a/b')],
  ['a link below a file', file('/etc/a'), link('/etc/a/l', '/etc/x')],
  ['a file below a link', link('/etc/a', '/etc/x'), file('/etc/a/b')],
  ["a file below a unit's text", foo, file(`${units}/foo.service/x`)],
  ['a file below the mask of a unit', unit('foo.service', { mask: true }), file(`${units}/foo.service/x`)],
  ["a file below a unit's link", foo, file(`${units}/multi-user.target.wants/foo.service/x`)],
  ['drop-ins below a file', file(`${units}/foo.service.d`), dropin],
  ['drop-ins below a link', link(`${units}/foo.service.d`, '/etc/x'), dropin],
  ['links of units below a file', file(`${units}/multi-user.target.wants`), foo],
  ['SSH keys below a file', file('/home/core/.ssh'), keys],
  ['SSH keys below a file by another name of the home', file('/var/home/core/.ssh'), keys],
  ['SSH keys below a link', link('/home/core/.ssh', '/etc/x'), keys],
  ['SSH keys in an image below a file', file('/etc/ssh/authorized_keys.d'), keys],
  ['units below a link', link(units, '/etc/x'), foo],
  ['units below a file', file(units), foo],
  ['a mask below a file', file(units), unit('foo.service', { mask: true })],
  ['a file below the file of SSH keys', keys, file('/home/core/.ssh/authorized_keys.d/ignition/x')],
  ['a file where the SSH keys are', file('/home/core/.ssh/authorized_keys.d/ignition'), keys],
  ['a file where a mask is', file(`${units}/foo.service`), unit('foo.service', { mask: true })],
  ...(
    [
      ['/home/u/a', '/var/home/u/a'],
      ['/root/a', '/var/roothome/a'],
      ['/opt/a', '/var/opt/a'],
      ['/srv/a', '/var/srv/a'],
      ['/mnt/a', '/var/mnt/a'],
      ['/media/a', '/run/media/a'],
      ['/usr/local/a', '/var/usrlocal/a'],
      ['/var/run/a', '/run/a'],
      ['/bin/a', '/usr/bin/a'],
      ['/sbin/a', '/usr/sbin/a'],
      ['/lib/a', '/usr/lib/a'],
      ['/lib64/a', '/usr/lib64/a'],
    ] as const
  ).map(([one, other]) => [`${one} and ${other}`, file(one), file(other)] as const),
  ['two names of one directory', directory('/home/u'), directory('/var/home/u')],
  ['a file below a file by another name', file('/var/home/u/a'), file('/home/u/a/b')],
  ['a hard link to a directory by another name', directory('/var/opt/a'), link('/opt/l', '/opt/a', true)],
  ['a hard link into another file system', file('/var/lib/a'), link('/etc/l', '/var/lib/a', true)],
  ['a hard link out of a home', file('/etc/a'), link('/home/core/l', '/etc/a', true)],
  ['hard links in a circle', link('/etc/a', '/etc/b', true), link('/etc/b', '/etc/a', true)],
];

/** The first is called `50-one` and the second `51-other`; both are of the role worker. */
export const impossibleConfigs: readonly ImpossibleConfigs[] = cases.map(([what, one, other]) => ({
  what,
  configs: [machineConfig('50-one', ignition(one)), machineConfig('51-other', ignition(other))],
}));
