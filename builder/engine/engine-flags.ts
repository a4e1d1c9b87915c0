import { tmpdir } from 'node:os';
import { type Command, Option } from 'commander';
import { present } from '../../api/present.ts';
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

/** What every build needs of an engine. */
export type EngineAccessParts = Omit<EngineParts, 'client' | 'onLine' | 'recorded'>;

/** @returns the command with these flags. */
export function withEngineFlags(command: Command): Command {
  return command
    .option(
      '--engine <address>',
      'container engine (Docker or Podman) for images that need commands to run: unix:///path or tcp://host:port',
    )
    .option(
      '--engine-tls-dir <dir>',
      'directory with ca.pem, cert.pem and key.pem for a container engine over TCP',
    )
    .option(
      '--engine-minutes <count>',
      'maximum minutes that the container engine may take for one image',
      wholeNumber(1),
      60,
    )
    .addOption(
      new Option(
        '--engine-work-dir <dir>',
        'directory for temporary copies of images; needs enough free space for them',
      ).default(tmpdir(), 'where temporary files go'),
    );
}

/**
 * @param parallel how many images the engine builds at once.
 * @returns what builds need of the engine. The connection is made when the first build has commands to run.
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
          'containerFile, packages, extensions and kernelType require a container engine, and this builder has none: configure one with --engine, or use a base image that contains them',
        );
      }
      reached ??= reach(engine, engineTlsDir);
      return reached;
    },
    workDir: engineWorkDir,
    slots: new Slots(parallel),
    built: new Set(),
    limitMs: engineMinutes * 60_000,
  };
}

/** The client is large, and most builders never need it. */
async function reach(url: string, tlsDir: string | undefined): Promise<ContainerEngine> {
  const { dockerEngine } = await import('./docker-engine.ts');
  try {
    return await dockerEngine({ url, ...present({ tlsDir }) });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new BuildFailure('EngineMisconfigured', why, { cause: error });
  }
}
