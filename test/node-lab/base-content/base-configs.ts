import type { MachineConfig } from '../../../api/machine-config.ts';
import { SERVICE_UID, USER } from './linked-base.ts';

/** One entry more than the line of a fragment of tmpfiles.d may hold (systemd, LONG_LINE_MAX: 1 MiB). */
const BIG_BYTES = 1_200_000;

const TEMPLATE = '[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n';
/** Enabled as an instance of a template of the same config. */
export const INSTANCE = 'lab-bar@x.service';

interface Attributes {
  readonly mode?: number;
  readonly user?: object;
  readonly group?: object;
}

const ofUser = { user: { name: USER }, group: { name: USER } };
const ofService = { user: { id: SERVICE_UID }, group: { id: SERVICE_UID } };

const file = (path: string, content: string, { mode = 0o644, ...owner }: Attributes = {}) => ({
  path,
  mode,
  overwrite: true,
  contents: { source: `data:,${encodeURIComponent(content)}` },
  ...owner,
});

/** The revisions of a config that differ in every text, in a file that only one has, and in one that the base has. */
export type Revision = 'one' | 'two';

/** @returns a rendered config that meets what the base has (linked-base.ts). */
export function meetingConfig(name: string, word: Revision): MachineConfig {
  return rendered(name, {
    storage: { files: filesOf(word), directories: DIRECTORIES, links: LINKS },
    systemd: unitsOf(word),
    passwd: { users: [{ name: USER, sshAuthorizedKeys: [`ssh-ed25519 AAAA ${word}`] }] },
  });
}

/** @returns the same without what no policy takes live: directories, links, and a first SSH key. */
export function liveConfig(name: string, word: Revision): MachineConfig {
  return rendered(name, { storage: { files: filesOf(word) }, systemd: unitsOf(word) });
}

/** @returns the same without state, which is no part of an image's tree. */
export function imageConfig(name: string, word: Revision): MachineConfig {
  const isOfImage = ({ path }: { readonly path: string }) => /^\/(etc|sbin|usr\/(?!local\/))/.test(path);
  return rendered(name, {
    storage: {
      files: filesOf(word).filter(isOfImage),
      directories: DIRECTORIES.filter(isOfImage),
      links: LINKS.filter(isOfImage),
    },
    systemd: unitsOf(word),
  });
}

/** @returns a rendered config with nothing. */
export const emptyConfig = (name: string): MachineConfig => rendered(name, {});

/** Those of the base with another mode and owner, and those that are missing. */
const DIRECTORIES = [
  { path: '/etc/lab-modes', mode: 0o750, ...ofUser },
  { path: '/etc/lab-new', mode: 0o700, ...ofService },
  { path: '/var/lib/lab-service/named', mode: 0o710, ...ofService },
];

const LINKS = [
  { path: '/etc/lab.d/link', target: '../lab-new/file', overwrite: true },
  { path: '/etc/lab.d/hard', target: '/etc/lab.d/file', hard: true, overwrite: true },
  { path: '/var/lib/lab/hard', target: '/var/lib/lab/file', hard: true, overwrite: true },
  { path: '/var/lib/lab/link', target: 'file', overwrite: true },
];

const unitsOf = (word: string) => ({
  units: [
    { name: 'lab-bar@.service', contents: `# ${word}\n${TEMPLATE}` },
    { name: INSTANCE, enabled: true },
  ],
});

const filesOf = (word: Revision) => [
  ...belowLinks(word),
  ...inClosedDirectories(word),
  ...ofState(word),
  ...(word === 'one' ? [file('/etc/ssl/certs/base-ca.pem', 'not the base’s\n')] : []),
  file(`/etc/lab.d/${word}.conf`, word),
  file('/etc/lab.d/file', word),
];

const belowLinks = (word: string) => [
  file('/etc/ssl/certs/lab-ca.pem', word),
  file('/etc/init.d/lab', word, { mode: 0o755 }),
  file('/usr/lib64/lab/lab.conf', word),
  file('/usr/sbin/lab-tool', word, { mode: 0o755 }),
  file('/sbin/lab-other', word, { mode: 0o755 }),
];

const inClosedDirectories = (word: string) => [
  file('/etc/sudoers.d/lab', `# ${word}\n`, { mode: 0o440 }),
  file('/etc/NetworkManager/system-connections/lab.nmconnection', word, { mode: 0o600 }),
  file('/etc/polkit-1/rules.d/50-lab.rules', word),
  file('/etc/lab-shared/lab', word, ofUser),
];

const ofState = (word: string) => [
  file('/usr/local/share/lab/big', `${word} ${'abcdefghij'.repeat(BIG_BYTES / 10)}`),
  file('/var/lib/lab-service/new/deep/state', word, { mode: 0o600, ...ofService }),
  file(`/home/${USER}/.config/containers/registries.conf`, word, ofUser),
  file('/var/lib/lab-shared/lab', word),
  file('/var/lib/lab/file', word),
  file('/opt/lab/bin/tool', word, { mode: 0o755 }),
  file('/root/.lab', word, { mode: 0o600 }),
];

function rendered(name: string, parts: object): MachineConfig {
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name },
    spec: { config: { ignition: { version: '3.4.0' }, ...parts } },
  } as MachineConfig;
}
