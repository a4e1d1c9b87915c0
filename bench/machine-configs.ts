import type { MachineConfig } from '../api/machine-config.ts';
import type { MachineConfigPool } from '../api/machine-config-pool.ts';
import { labels } from '../api/names.ts';

/** What the benchmarks render: MachineConfigs of 5 files of 1 KiB and 2 units each. */

const FILES = 5;
const UNITS = 2;
const FILE_BYTES = 1024;
/** Of every hundred configs this many override files of an earlier one, as a custom pool's do. */
const OVERRIDING_PERCENT = 20;

export const pool: MachineConfigPool = {
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineConfigPool',
  metadata: { name: 'worker', uid: '0' },
  spec: {},
};

/**
 * @param revision other contents in each file.
 * @returns one of the MachineConfigs.
 */
export function machineConfig(index: number, revision = 0): MachineConfig {
  const owner = index % 100 < OVERRIDING_PERCENT ? Math.floor(index / 100) * 100 : index;
  const text = `# ${index} ${revision}\n`
    .padEnd(FILE_BYTES, 'server ntp.example.org iburst\n')
    .slice(0, FILE_BYTES);
  const files = Array.from({ length: FILES }, (_, file) => ({
    path: `/etc/example.d/${owner}/${file}.conf`,
    mode: 0o644,
    contents: {
      source:
        file % 2 === 0
          ? `data:,${encodeURIComponent(text)}`
          : `data:text/plain;charset=utf-8;base64,${Buffer.from(text).toString('base64')}`,
    },
  }));
  const units = Array.from({ length: UNITS }, (_, unit) => ({
    name: `example-${owner}-${unit}.service`,
    enabled: true,
    contents: `[Unit]\nDescription=Example ${index}\n[Service]\nExecStart=/usr/bin/true\n[Install]\nWantedBy=multi-user.target\n`,
    dropins: [{ name: `${index}.conf`, contents: '[Service]\nNice=5\n' }],
  }));
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name: `${String(index).padStart(5, '0')}-example`, labels: { [labels.role]: 'worker' } },
    spec: { config: { ignition: { version: '3.4.0' }, storage: { files }, systemd: { units } } },
  };
}
