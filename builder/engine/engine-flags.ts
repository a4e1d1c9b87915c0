import { tmpdir } from 'node:os';
import { type Command, Option } from 'commander';
import { wholeNumber } from '../../cluster/process.ts';
import { BuildFailure } from '../build-failure.ts';
import { Slots } from '../slots.ts';
import type { ContainerEngine } from './container-engine.ts';
import type { EngineParts } from './engine-image.ts';

/** Flags that name a container engine. */
export interface EngineFlags {
  readonly engine?: string;
  readonly engineTlsDir?: string;
  readonly engineMinutes: number;
  readonly engineWorkDir: string;
}

/** What builds need of an engine, whatever they are. */
export type EngineAccessParts = Omit<EngineParts, 'client' | 'onLine'>;

/** @returns the command with these flags. */
export function withEngineFlags(command: Command): Command {
  return command
    .option(
      '--engine <address>',
      'Docker or Podman, for what needs commands to run in the image: unix:///path or tcp://host:port',
    )
    .option('--engine-tls-dir <dir>', 'ca.pem, cert.pem and key.pem of an engine on TCP')
    .option('--engine-minutes <count>', 'how long the engine may take for one image', wholeNumber(1), 60)
    .addOption(
      new Option('--engine-work-dir <dir>', 'where its images lie for a while; needs their room').default(
        tmpdir(),
        'where temporary files go',
      ),
    );
}

/**
 * @param parallel images that the engine makes at once.
 * @returns what builds need of the engine. It is reached when the first of them has commands to run.
 */
export function engineParts(
  { engine, engineTlsDir, engineMinutes, engineWorkDir }: EngineFlags,
  parallel: number,
): EngineAccessParts {
  let reached: Promise<ContainerEngine> | undefined;
  return {
    engine: async () => {
      if (engine === undefined) {
        throw new BuildFailure(
          'NoEngine',
          'containerFile, packages, extensions and another kernel need a container engine, and this builder has none; give it one by --engine, or bring the result as the base image',
        );
      }
      reached ??= reach(engine, engineTlsDir);
      return reached;
    },
    workDir: engineWorkDir,
    slots: new Slots(parallel),
    limitMs: engineMinutes * 60_000,
  };
}

/** The client is large, and most builders never need it. */
async function reach(url: string, tlsDir: string | undefined): Promise<ContainerEngine> {
  const { dockerEngine } = await import('./docker-engine.ts');
  try {
    return await dockerEngine({ url, ...(tlsDir === undefined ? {} : { tlsDir }) });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new BuildFailure('EngineMisconfigured', why, { cause: error });
  }
}
