import type { MachineConfig } from '../../api/machine-config.ts';
import { layerContent } from '../../builder/layer/layer-content.ts';
import type { LayerEntry } from '../../image/layer/entry.ts';
import { parseNodeConfig } from '../../machineconfig/parse-node-config.ts';
import { CONFIG, SERVICE } from './lab-updates.ts';

/** Whose key the config has. The machine's policy labels home directories by where the account has them. */
const USER = 'core';
const HOME = `/home/${USER}`;
const UNIT = 'lab-extra.service';

/** Each in a directory of another label, or with a label that isn't its directory's; some directories are new. */
const FILES: Readonly<Record<string, number>> = {
  '/etc/lab.d/nested/a.conf': 0o644,
  '/etc/hosts': 0o644,
  '/etc/cron.d/lab': 0o644,
  '/etc/modprobe.d/lab.conf': 0o644,
  '/var/lib/lab/nested/state': 0o600,
  '/var/log/lab.log': 0o640,
  '/usr/local/bin/lab-tool': 0o755,
  '/usr/local/etc/lab.conf': 0o644,
  '/opt/lab/bin/tool': 0o755,
  '/root/.ssh/config': 0o600,
};

/** What standard mode writes of the config beside its files. */
const UNITS = [
  `/etc/systemd/system/${UNIT}`,
  `/etc/systemd/system/multi-user.target.wants/${UNIT}`,
  `/etc/systemd/system/${SERVICE}.d/10-lab.conf`,
];

/** Where a host of ostree has the directories of the files that its root has as links. */
const real = (file: string) =>
  file
    .replace(/^\/home\//, '/var/home/')
    .replace(/^\/root\//, '/var/roothome/')
    .replace(/^\/usr\/local\//, '/var/usrlocal/')
    .replace(/^\/opt\//, '/var/opt/');

/** With the directories that they made necessary, without links. */
const WRITTEN = [
  ...['/etc/lab.d', '/etc/lab.d/nested', '/var/lib/lab', '/var/lib/lab/nested', '/var/usrlocal/bin'],
  ...['/var/usrlocal/etc', '/var/opt/lab', '/var/opt/lab/bin', '/var/roothome/.ssh'],
  ...Object.keys(FILES),
  ...UNITS,
].map(real);

/** @returns what each mode has on the disk of a config. */
export const writtenInStandardMode: readonly string[] = [
  ...WRITTEN,
  CONFIG,
  `/var${HOME}/.ssh`,
  `/var${HOME}/.ssh/authorized_keys.d`,
  `/var${HOME}/.ssh/authorized_keys.d/ignition`,
];
export const writtenInLayeredMode: readonly string[] = [
  ...WRITTEN,
  CONFIG,
  `/etc/ssh/authorized_keys.d/${USER}`,
  '/usr/share/shale/machine-config.json',
];

/** @param word in each file. @returns a rendered config that writes wherever a policy has labels of its own. */
export function labelledConfig(name: string, word: string): MachineConfig {
  const file = (path: string, mode: number, content: string) => ({
    path,
    mode,
    overwrite: true,
    contents: { source: `data:,${encodeURIComponent(content)}` },
  });
  const files = [
    ...Object.entries(FILES).map(([path, mode]) => file(path, mode, `# ${word}\n`)),
    // As every image of the lab has it.
    file(CONFIG, 0o644, `${name}\n`),
  ];
  const unit = `# ${word}\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n`;
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name },
    spec: {
      config: {
        ignition: { version: '3.4.0' },
        storage: { files },
        systemd: {
          units: [
            { name: UNIT, enabled: true, contents: unit },
            {
              name: SERVICE,
              dropins: [{ name: '10-lab.conf', contents: `[Service]\nEnvironment=LAB=${word}\n` }],
            },
          ],
        },
        passwd: { users: [{ name: USER, sshAuthorizedKeys: [`ssh-ed25519 AAAA ${word}`] }] },
      },
    },
  };
}

/**
 * @returns the layer that the builder makes of it, but for the config of the service, which every image of the lab has.
 */
export function labelledLayer(rendered: MachineConfig): readonly LayerEntry[] {
  const parsed = parseNodeConfig(rendered);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  const layer = layerContent(parsed.config, rendered);
  if (!layer.ok) throw new Error(JSON.stringify(layer.refusals));
  return layer.entries.filter(({ path }) => path !== CONFIG);
}
