import { type Command, Option } from 'commander';
import type { Logger } from 'pino';
import type { ApiClient } from '../../../cluster/api-client.ts';
import { type EngineFlags, enginesByAddress } from '../engine-flags.ts';
import type { Engines } from '../engines.ts';
import { PodEngines } from './pod-engines.ts';

/** Value of `--engine` that means a pod for each image. */
const POD = 'pod';

/** Flags about engines in pods; the operator has their defaults. */
export interface PodEngineFlags extends EngineFlags {
  readonly engineImage: string;
  readonly shaleImage: string;
  readonly engineDisk: string;
  readonly engineMemory: string;
  readonly engineMemoryLimit: string;
  readonly engineHostUsers: boolean;
}

/** @returns the builder's command with these flags. */
export function withPodEngineFlags(command: Command): Command {
  return command
    .addOption(
      new Option('--engine-image <pullspec>', 'image with Podman, for --engine pod').default(
        'quay.io/podman/stable:v5',
      ),
    )
    .option('--shale-image <pullspec>', "Shale's image, for --engine pod", 'shale')
    .option('--engine-disk <quantity>', 'limit of the storage of a pod of --engine pod', '64Gi')
    .option('--engine-memory <quantity>', 'memory that a pod of --engine pod requests for Podman', '1Gi')
    .option(
      '--engine-memory-limit <quantity>',
      'memory that Podman and its commands may have in a pod of --engine pod',
      '8Gi',
    )
    .option(
      '--engine-host-users',
      'run the pods of --engine pod without a user namespace of their own, on clusters that have none',
      false,
    );
}

/** @returns where the builder finds engines, as its flags say. */
export function enginesOf(
  flags: PodEngineFlags,
  { client, log }: { readonly client: ApiClient; readonly log: Logger },
): Engines {
  if (flags.engine !== POD) return enginesByAddress(flags);
  const { engineImage, shaleImage, engineDisk, engineMemory, engineMemoryLimit } = flags;
  const { engineHostUsers, engineMinutes } = flags;
  const settings = {
    engineImage,
    shaleImage,
    diskLimit: engineDisk,
    memoryRequest: engineMemory,
    memoryLimit: engineMemoryLimit,
    hostUsers: engineHostUsers,
  };
  return new PodEngines({ client, log, settings, limitMs: engineMinutes * 60_000 });
}
