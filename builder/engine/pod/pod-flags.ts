import type { Command } from 'commander';
import type { Logger } from 'pino';
import type { ApiClient } from '../../../cluster/api-client.ts';
import { ENGINE_POD, type EngineFlags, enginesByAddress, withEnginePodFlags } from '../engine-flags.ts';
import type { Engines } from '../engines.ts';
import type { EnginePodSettings } from './engine-pod.ts';
import { PodEngines } from './pod-engines.ts';

/** Flags of the builder about engines. */
export interface PodEngineFlags extends EngineFlags, EnginePodSettings {}

/** @returns the builder's command with these flags. */
export function withPodEngineFlags(command: Command): Command {
  return withEnginePodFlags(command).option(
    '--shale-image <pullspec>',
    "Shale's image, for --engine pod",
    'shale',
  );
}

/** @returns where the builder finds engines, as its flags say. */
export function enginesOf(
  flags: PodEngineFlags,
  { client, log }: { readonly client: ApiClient; readonly log: Logger },
): Engines {
  if (flags.engine !== ENGINE_POD) return enginesByAddress(flags);
  return new PodEngines({ client, log, settings: flags, limitMs: flags.engineMinutes * 60_000 });
}
