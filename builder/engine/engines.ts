import { errorMessage } from '../../api/error-message.ts';
import { present } from '../../api/present.ts';
import { BuildFailure } from '../build-failure.ts';
import type { ContainerEngine } from './container-engine.ts';

/** The image that an engine is needed for. */
export interface EngineUser {
  /** The MachineOSBuild; absent outside of a cluster. */
  readonly build?: { readonly name: string; readonly uid: string };
  readonly pool: string;
  /** Of the image; a GOARCH value. */
  readonly architecture: string;
}

/** Where builds find a container engine. */
export interface Engines {
  /** False if every build that needs commands fails with the reason NoEngine. */
  readonly available: boolean;
  /**
   * Runs work with an engine. What was created for it is deleted at the end, also after a failure.
   *
   * @throws BuildFailure if there is no engine, or its flags are wrong; EngineError if it can't be reached; what the
   *   work throws.
   */
  use<T>(user: EngineUser, work: (engine: ContainerEngine) => Promise<T>, signal: AbortSignal): Promise<T>;
  /**
   * Deletes what was created for work that is over, also by an earlier process. @throws if not all of it could be
   * deleted.
   */
  removeLeftovers(signal: AbortSignal): Promise<void>;
}

/** @returns what a builder has that was given no engine. */
export function noEngine(): Engines {
  return {
    available: false,
    use: async () => {
      throw new BuildFailure(
        'NoEngine',
        'containerFile, packages, extensions and kernelType require a container engine, and this builder has none: configure one with --engine, or use a base image that contains them',
      );
    },
    removeLeftovers: async () => undefined,
  };
}

/**
 * An engine that runs already, for all builds. It is connected to when the first build has commands to run: the client
 * is large, and most builders never need it.
 *
 * @param url `unix:///path` or `tcp://host:port`.
 * @param tlsDir directory with ca.pem, cert.pem and key.pem.
 */
export function engineAt(url: string, tlsDir: string | undefined): Engines {
  let reached: Promise<ContainerEngine> | undefined;
  return {
    available: true,
    use: async (_user, work) => {
      reached ??= reach(url, tlsDir);
      return work(await reached);
    },
    removeLeftovers: async () => undefined,
  };
}

async function reach(url: string, tlsDir: string | undefined): Promise<ContainerEngine> {
  const { engineAccess } = await import('./engine-access.ts');
  const { dockerEngine } = await import('./docker-engine.ts');
  try {
    return dockerEngine(await engineAccess(url, present({ tlsDir })));
  } catch (error) {
    const why = errorMessage(error);
    throw new BuildFailure('EngineMisconfigured', why, { cause: error });
  }
}
