import type { Readable } from 'node:stream';

/** What an engine is and can do. */
export interface EngineAbout {
  readonly kind: 'Docker' | 'Podman';
  readonly version: string;
  /** Whether its builds are BuildKit's: `RUN --mount` is understood then. */
  readonly buildKit: boolean;
  /** In Go's words. */
  readonly architecture: string;
}

export interface EngineBuild {
  readonly context: Buffer;
  readonly containerfile: string;
  /** Name that the image gets in the engine. */
  readonly tag: string;
  /** `linux/<architecture>` where it is not the engine's own. */
  readonly platform?: string;
  readonly buildArguments: Readonly<Record<string, string>>;
  /** Ids of secrets and their files in the context. */
  readonly secrets: readonly { readonly id: string; readonly file: string }[];
  /** Images whose steps may be used again. */
  readonly cacheFrom: readonly string[];
}

/** A container engine behind what a build asks of it. */
export interface ContainerEngine {
  /** @throws EngineError */
  about(signal: AbortSignal): Promise<EngineAbout>;
  hasImage(name: string, signal: AbortSignal): Promise<boolean>;
  /** Loads an archive as `docker save` writes it. */
  load(archive: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void>;
  /**
   * Builds an image; when the signal is aborted the engine stops its work.
   *
   * @param onOutput is given the output in pieces as it comes.
   * @throws StepFailed when a command of the Containerfile fails; EngineError for everything else.
   */
  build(build: EngineBuild, onOutput: (text: string) => void, signal: AbortSignal): Promise<void>;
  /** @returns the image as an archive, as it comes. */
  save(name: string, signal: AbortSignal): Promise<Readable>;
  /** Nothing is removed if the image does not exist. */
  remove(name: string, signal: AbortSignal): Promise<void>;
}

/** The engine can't be reached, or can't do what is asked. */
export class EngineError extends Error {
  override readonly name = 'EngineError';
  readonly reason: 'EngineUnavailable' | 'EngineDiskFull' | 'EngineFailed';

  constructor(reason: EngineError['reason'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}

/** A command of the Containerfile failed: its author must fix it. */
export class StepFailed extends Error {
  override readonly name = 'StepFailed';
}
