import type { MachineConfig } from '../../api/machine-config.ts';
import { annotations, labels, MCO_GROUP } from '../../api/names.ts';
import { IGNITION_VERSION } from '../ignition/parse.ts';
import type { Problem } from '../problem.ts';
import { type MirrorObjects, mergeMirrorObjects } from './mirror-rules.ts';
import { formatRegistriesConf } from './registries-conf.ts';

export type RegistriesMachineConfig =
  /** Absent: there are no mirrors, and there should be no such MachineConfig. */
  | { readonly ok: true; readonly machineConfig?: MachineConfig }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/**
 * The MachineConfig that brings the cluster's image mirrors to a pool's nodes, named as MCO names it.
 *
 * @param pool name of the pool, which becomes the role that the config is for.
 * @param input every mirror object of the cluster, and the version that is written as the controller's.
 * @returns the MachineConfig, or every conflict between the objects.
 */
export function registriesMachineConfig(
  pool: string,
  input: MirrorObjects & { readonly controllerVersion: string },
): RegistriesMachineConfig {
  const merged = mergeMirrorObjects(input);
  if (!merged.ok) return merged;
  if (merged.rules.length === 0) return { ok: true };
  const text = Buffer.from(formatRegistriesConf(merged.rules)).toString('base64');
  return {
    ok: true,
    machineConfig: {
      apiVersion: `${MCO_GROUP}/v1`,
      kind: 'MachineConfig',
      metadata: {
        name: `99-${pool}-generated-registries`,
        labels: { [labels.role]: pool },
        annotations: { [annotations.generatedByController]: input.controllerVersion },
      },
      spec: {
        config: {
          ignition: { version: IGNITION_VERSION },
          storage: {
            files: [
              {
                path: '/etc/containers/registries.conf',
                mode: 0o644,
                overwrite: true,
                contents: { source: `data:text/plain;charset=utf-8;base64,${text}` },
              },
            ],
          },
        },
      },
    },
  };
}
