import { nodePaths } from '../../api/names.ts';
import { present } from '../../api/present.ts';

/**
 * What the MachineConfigs of a walk are made of. Each slot is one MachineConfig that is absent or has one of several
 * contents; what each puts on a node is written here by hand, so that the daemon isn't compared with itself.
 */
export interface Slot {
  /** Of its MachineConfig, after `50-walk-`. */
  readonly name: string;
  /** The first is always "absent". */
  readonly variants: readonly Variant[];
  /**
   * What of it Ignition alone could do on a running node, so that the operator refuses it
   * (machineconfig/reconcilable.ts).
   */
  readonly refused?: 'changes' | 'changes but removal';
}

export type Mode = 'Standard' | 'Layered';

/** Paths by their real names (`/var/usrlocal/bin/x`), with what lies there; undefined: nothing may lie there. */
export type Content = Readonly<Record<string, string | undefined>>;

export interface Variant {
  /** Of the MachineConfig's spec. */
  readonly spec?: { readonly config?: object; readonly kernelArguments?: readonly string[] };
  readonly content?: (mode: Mode) => Content;
}

const absent: Variant = {};

/** @returns a file as a snapshot has it. */
export function fileText(contents: string, mode = 0o644, owner = '0:0'): string {
  return `file ${mode.toString(8)} ${owner} ${JSON.stringify(contents)}`;
}

/** @returns a symbolic link as a snapshot has it. */
export function linkText(target: string, owner = '0:0'): string {
  return `link ${owner} ${target}`;
}

const dataUrl = (text: string) => `data:,${encodeURIComponent(text)}`;

interface FileOptions {
  readonly mode?: number;
  /** A user that the stock image knows, with its ids. */
  readonly owner?: { readonly name: string; readonly ids: string };
  /** Where it lies, past the links of the image. */
  readonly real?: string;
}

function file(path: string, text: string, { mode = 0o644, owner, real = path }: FileOptions = {}): Variant {
  const named = owner === undefined ? {} : { user: { name: owner.name }, group: { name: owner.name } };
  const files = [{ path, mode, overwrite: true, contents: { source: dataUrl(text) }, ...named }];
  return {
    spec: { config: { storage: { files } } },
    content: () => ({ [real]: fileText(text, mode, owner?.ids) }),
  };
}

interface UnitOf {
  readonly name: string;
  readonly contents?: string;
  readonly enabled?: boolean;
  readonly mask?: boolean;
  readonly dropins?: readonly { readonly name: string; readonly contents: string }[];
}

function unit(unitOf: UnitOf, content: NonNullable<Variant['content']>): Variant {
  return { spec: { config: { systemd: { units: [unitOf] } } }, content };
}

const UNITS = '/etc/systemd/system';
const WANTS = `${UNITS}/multi-user.target.wants`;
const ownText = (nice: number) =>
  `[Service]\nExecStart=/bin/true\nNice=${nice}\n[Install]\nWantedBy=multi-user.target\n`;
const own = (nice: number, enabled: boolean | undefined) =>
  unit({ name: 'own.service', contents: ownText(nice), ...present({ enabled }) }, () => ({
    [`${UNITS}/own.service`]: fileText(ownText(nice)),
    [`${WANTS}/own.service`]: enabled === true ? linkText(`${UNITS}/own.service`) : undefined,
  }));

/** For nodes that are installed from an image; the others' daemons enable and disable the base's units themselves. */
const PRESET = '/etc/systemd/system-preset/20-shale.preset';
const sshdEnabled = (enabled: boolean): Variant =>
  unit({ name: 'sshd.service', enabled }, (mode) => ({
    ...(mode === 'Layered' ? { [PRESET]: fileText(`${enabled ? 'enable' : 'disable'} sshd.service\n`) } : {}),
    [`${WANTS}/sshd.service`]: enabled ? linkText('/usr/lib/systemd/system/sshd.service') : undefined,
  }));

const DROPIN = '[Service]\nNice=5\n';
const keysOf = (...keys: readonly string[]): Variant => ({
  spec: { config: { passwd: { users: [{ name: 'core', sshAuthorizedKeys: keys }] } } },
  content: (mode) => {
    const text = keys.map((key) => `${key}\n`).join('');
    return mode === 'Standard'
      ? { '/var/home/core/.ssh/authorized_keys.d/ignition': fileText(text, 0o600, '1000:1000') }
      : {
          [nodePaths.sshdConfig]: fileText(
            `AuthorizedKeysFile .ssh/authorized_keys .ssh/authorized_keys.d/ignition ${nodePaths.authorizedKeysDirectory}/%u\n`,
          ),
          [`${nodePaths.authorizedKeysDirectory}/core`]: fileText(text),
        };
  },
});

const kernelArguments = (...given: readonly string[]): Variant => ({
  spec: { kernelArguments: given },
  content: (mode) =>
    mode === 'Standard'
      ? {}
      : {
          [nodePaths.kernelArguments]: fileText(
            `kargs = [${given.map((argument) => JSON.stringify(argument)).join(', ')}]\n`,
          ),
        },
});

const core = { name: 'core', ids: '1000:1000' };
const registriesConf = (mirror: string, byDigest: boolean) =>
  file(
    '/etc/containers/registries.conf',
    `[[registry]]\nlocation = "quay.test"\nmirror-by-digest-only = ${byDigest}\n[[registry.mirror]]\nlocation = "${mirror}"\n`,
  );

/** The stock image's own, which a config can ask for, too. */
const STOCK_CHRONY = 'pool pool.ntp.org iburst\ndriftfile /var/lib/chrony/drift\nmakestep 1.0 3\nrtcsync\n';

/** Each slot with its contents. */
export const slots: readonly Slot[] = [
  {
    name: 'etc',
    variants: [
      absent,
      file('/etc/walk/a.conf', 'one\n'),
      file('/etc/walk/a.conf', 'two\n'),
      file('/etc/walk/a.conf', 'two\n', { mode: 0o600 }),
      file('/etc/walk/a.conf', 'two\n', { mode: 0o600, owner: core }),
    ],
  },
  {
    name: 'moved',
    variants: [absent, file('/etc/walk/deep/one/b.conf', 'b\n'), file('/etc/walk/deep/two/b.conf', 'b\n')],
  },
  {
    name: 'chrony',
    variants: [
      absent,
      file('/etc/chrony.conf', 'server one\n'),
      file('/etc/chrony.conf', 'server two\n'),
      file('/etc/chrony.conf', STOCK_CHRONY),
    ],
  },
  {
    name: 'local',
    variants: [
      absent,
      file('/usr/local/bin/tool', '#!/bin/sh\n', { mode: 0o755, real: '/var/usrlocal/bin/tool' }),
      file('/usr/local/bin/tool', '#!/bin/sh -e\n', { mode: 0o755, real: '/var/usrlocal/bin/tool' }),
      file('/usr/local/lib/deep/tool', 'lib\n', { real: '/var/usrlocal/lib/deep/tool' }),
    ],
  },
  {
    name: 'var',
    variants: [
      absent,
      file('/var/lib/walk/state', 'v\n'),
      file('/var/lib/walk/state', 'w\n'),
      file('/var/lib/walk/state', 'w\n', { mode: 0o640, owner: core }),
    ],
  },
  {
    name: 'opt',
    variants: [
      absent,
      file('/opt/walk/o', 'o\n', { real: '/var/opt/walk/o' }),
      file('/srv/walk', 's\n', { real: '/var/srv/walk' }),
      file('/root/.walkrc', 'r\n', { real: '/var/roothome/.walkrc', mode: 0o600 }),
    ],
  },
  {
    name: 'home',
    variants: [
      absent,
      file('/home/core/.walkrc', 'h\n', { owner: core, real: '/var/home/core/.walkrc' }),
      file('/home/core/.walkrc', 'i\n', { owner: core, real: '/var/home/core/.walkrc' }),
    ],
  },
  { name: 'registries', variants: [absent, registriesConf('a.test', true), registriesConf('b.test', true)] },
  {
    name: 'own-unit',
    variants: [
      absent,
      own(1, true),
      own(1, false),
      own(2, true),
      own(2, undefined),
      unit({ name: 'own.service', mask: true }, () => ({ [`${UNITS}/own.service`]: linkText('/dev/null') })),
    ],
  },
  {
    name: 'dropin',
    variants: [
      absent,
      unit({ name: 'crio.service', dropins: [{ name: '10-walk.conf', contents: DROPIN }] }, () => ({
        [`${UNITS}/crio.service.d/10-walk.conf`]: fileText(DROPIN),
      })),
      unit({ name: 'crio.service', dropins: [{ name: '20-walk.conf', contents: DROPIN }] }, () => ({
        [`${UNITS}/crio.service.d/20-walk.conf`]: fileText(DROPIN),
      })),
    ],
  },
  { name: 'stock-unit', variants: [absent, sshdEnabled(false), sshdEnabled(true)] },
  { name: 'keys', variants: [absent, keysOf('ssh-ed25519 A'), keysOf('ssh-ed25519 A', 'ssh-ed25519 B')] },
  {
    name: 'kargs',
    variants: [absent, kernelArguments('walk=1'), kernelArguments('walk=1', 'walk=2')],
  },
  {
    name: 'link',
    refused: 'changes but removal',
    variants: [
      absent,
      {
        spec: {
          config: { storage: { links: [{ path: '/etc/walk-link', target: 'hosts', overwrite: true }] } },
        },
        content: () => ({ '/etc/walk-link': linkText('hosts') }),
      },
      {
        spec: {
          config: { storage: { links: [{ path: '/etc/walk-link', target: '/usr/lib', overwrite: true }] } },
        },
        content: () => ({ '/etc/walk-link': linkText('/usr/lib') }),
      },
    ],
  },
  {
    name: 'directory',
    refused: 'changes',
    variants: [
      absent,
      {
        spec: {
          config: { storage: { directories: [{ path: '/etc/walk-dir', mode: 0o750, overwrite: true }] } },
        },
        content: () => ({ '/etc/walk-dir': 'directory 750 0:0' }),
      },
      {
        spec: {
          config: { storage: { directories: [{ path: '/var/lib/walk-dir', mode: 0o750, overwrite: true }] } },
        },
        content: () => ({ '/var/lib/walk-dir': 'directory 750 0:0' }),
      },
    ],
  },
];

/** @returns the units of the walk's own that contents do not have, or mask. */
export function withdrawnBy(variants: readonly number[]): ReadonlySet<string> {
  const at = slots.findIndex(({ name }) => name === 'own-unit');
  const [absent, masked] = [0, 5];
  return new Set([absent, masked].includes(variants[at] ?? absent) ? ['own.service'] : []);
}

/** @returns whether running nodes can't go from some contents to others. */
export function isRefused(before: readonly number[], after: readonly number[]): boolean {
  return slots.some(({ refused }, index) => {
    if (refused === undefined || before[index] === after[index]) return false;
    return refused === 'changes' || after[index] !== 0;
  });
}
