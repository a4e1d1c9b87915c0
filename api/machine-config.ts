import { z } from 'zod';
import { clusterKind, type KubernetesObject, MCO_V1, type ObjectMeta } from './object.ts';

/**
 * `spec.config` is an Ignition config and reaches the renderer unchanged. At admission the schema rejects only what is
 * certainly invalid: an unsupported version, and paths that are relative or contain `..`.
 */
const RawIgnitionConfig = z
  .looseObject({
    ignition: z
      .looseObject({
        version: z
          .string()
          .regex(/^(2\.[0-2]\.0|3\.[0-5]\.0)$/, { error: '2.0.0 to 2.2.0, or 3.0.0 to 3.5.0' })
          .describe('Ignition spec version: 2.0.0 to 2.2.0 or 3.0.0 to 3.5.0.'),
      })
      .exactOptional()
      .describe(
        'The version of the Ignition spec. What else this section may have, only Ignition itself reads.',
      ),
    storage: z
      .looseObject({
        files: z
          .array(
            z
              .looseObject({
                path: z
                  .string()
                  .max(4096)
                  .regex(/^\/([^/.][^/]*|\.[^/.][^/]*|\.\.[^/]+)(\/([^/.][^/]*|\.[^/.][^/]*|\.\.[^/]+))*$/, {
                    error: 'an absolute path without empty, "." or ".." elements',
                  })
                  .describe('Absolute, without empty, "." or ".." elements.'),
              })
              .describe('A file: its path, contents, mode and owner.'),
          )
          .exactOptional()
          .describe('Files of the nodes, by path.'),
      })
      .exactOptional()
      .describe('Files, directories, links, disks and filesystems.'),
  })
  .describe('An Ignition config (https://coreos.github.io/ignition/specs/): files, systemd units, SSH keys.');

export const MachineConfigSpec = z.object({
  osImageURL: z
    .string()
    .exactOptional()
    .describe(
      'The OS image of the nodes, by digest. Of the MachineConfigs of a pool, the last that sets it wins.',
    ),
  baseOSExtensionsContainerImage: z
    .string()
    .exactOptional()
    .describe('The image that extensions are installed from.'),
  config: RawIgnitionConfig.exactOptional(),
  kernelArguments: z
    .array(z.string())
    .nullable()
    .exactOptional()
    .describe('Kernel arguments to add. A change requires a reboot.'),
  extensions: z.array(z.string()).nullable().exactOptional().describe('OS extensions to install.'),
  fips: z.boolean().exactOptional().describe('FIPS mode. It can not be changed on existing nodes.'),
  kernelType: z.string().exactOptional().describe('The kernel: default, realtime or 64k-pages.'),
});
export type MachineConfigSpec = z.infer<typeof MachineConfigSpec>;

/** A piece of node configuration, an admin's or, with a generated-by annotation, a controller's. */
export interface MachineConfig extends KubernetesObject {
  readonly metadata: ObjectMeta;
  readonly spec: MachineConfigSpec;
}

export const MachineConfigs = clusterKind<MachineConfig>(MCO_V1, 'MachineConfig');
