import type { MachineConfig, MachineConfigSpec } from '../../api/machine-config.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { labels } from '../../api/names.ts';

/** Short ways to write down the objects that tests of this room are about. */

export function pool(name: string, spec: MachineConfigPool['spec'] = {}): MachineConfigPool {
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfigPool',
    metadata: { name, uid: `uid-of-${name}` },
    spec,
  };
}

/** @param config any JSON: what is wrong with it is often the point. */
export function machineConfig(
  name: string,
  config: unknown,
  spec: Partial<MachineConfigSpec> = {},
  role = 'worker',
): MachineConfig {
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name, labels: { [labels.role]: role } },
    spec: {
      ...spec,
      ...(config !== undefined && { config: config as NonNullable<MachineConfigSpec['config']> }),
    },
  };
}

/** An Ignition config of the newest version. */
export function ignition(sections: object): object {
  return { ignition: { version: '3.5.0' }, ...sections };
}

export function file(path: string, text: string, fields: object = {}): object {
  return { path, contents: { source: `data:,${encodeURIComponent(text)}` }, ...fields };
}
