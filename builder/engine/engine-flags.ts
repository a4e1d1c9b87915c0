import { tmpdir } from 'node:os';
import { type Command, Option } from 'commander';
import { wholeNumber } from '../../cluster/process.ts';
import { ARCHIVE_LIMITS } from '../../image/archive/archive-limits.ts';
import { Slots } from '../slots.ts';
import type { EngineParts } from './engine-image.ts';
import { type Engines, engineAt, noEngine } from './engines.ts';

const GIB = 1024 ** 3;

/** Flags that name a container engine. */
export interface EngineFlags {
  readonly engine?: string;
  readonly engineTlsDir?: string;
  readonly engineMinutes: number;
  readonly engineGibibytes: number;
  readonly engineWorkDir: string;
}

/** Value of `--engine` that means Podman in a pod of its own for each image. */
export const ENGINE_POD = 'pod';
/** Podman's own image, which is made for running it in a container without privileges. */
const PODMAN_IMAGE = 'quay.io/podman/stable:v5';

/** Flags about the pods of engines: the operator passes its own on to the builder. */
export interface EnginePodFlags {
  /** Image with Podman, for a user 1000 with subordinate IDs. */
  readonly engineImage: string;
  /** Limit of the volume with images and layers; a quantity. */
  readonly engineDisk: string;
  /** What the scheduler keeps free for Podman, as a Kubernetes quantity. */
  readonly engineMemory: string;
  /** What Podman and its commands may have at most, as a quantity. */
  readonly engineMemoryLimit: string;
  /** True for clusters without user namespaces for pods. */
  readonly engineHostUsers: boolean;
}

/** @returns the command with the flags about the pods of engines. */
export function withEnginePodFlags(command: Command): Command {
  return command
    .option('--engine-image <pullspec>', 'image with Podman, for --engine pod', PODMAN_IMAGE)
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

/** What every build needs of an engine. */
export type EngineAccessParts = Omit<EngineParts, 'client' | 'onLine' | 'recorded' | 'build'>;

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
    .option(
      '--engine-gibibytes <count>',
      'maximum GiB of an image that the container engine builds, uncompressed and with its base',
      wholeNumber(1),
      ARCHIVE_LIMITS.bytes / GIB,
    )
    .addOption(
      new Option(
        '--engine-work-dir <dir>',
        'directory for temporary copies of images; needs enough free space for them',
      ).default(tmpdir(), 'where temporary files go'),
    );
}

/**
 * @param engines where they are found.
 * @param parallel how many images are built by engines at once.
 */
export function engineParts(
  {
    engineMinutes,
    engineGibibytes,
    engineWorkDir,
  }: Pick<EngineFlags, 'engineMinutes' | 'engineGibibytes' | 'engineWorkDir'>,
  engines: Engines,
  parallel: number,
): EngineAccessParts {
  return {
    engines,
    workDir: engineWorkDir,
    slots: new Slots(parallel),
    built: new Set(),
    limitMs: engineMinutes * 60_000,
    limitBytes: engineGibibytes * GIB,
  };
}

/** @returns the engine that the flags name by its address, if they name one. */
export function enginesByAddress({ engine, engineTlsDir }: EngineFlags): Engines {
  return engine === undefined ? noEngine() : engineAt(engine, engineTlsDir);
}
