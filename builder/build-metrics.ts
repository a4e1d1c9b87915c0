import type { BuildFailure } from './build-failure.ts';
import type { BuildWay } from './status.ts';

/** Bytes of an image's layers, by how they came to their repository. */
export interface MovedBytes {
  readonly sent: number;
  readonly mounted: number;
}

/** Is told what builds do. */
export interface BuildMetrics {
  /** @param seconds that it waited for its place. */
  started(seconds: number): void;
  succeeded(way: BuildWay, seconds: number, bytes: MovedBytes): void;
  /** @param final whether it is not tried again. */
  failed(failure: BuildFailure, seconds: number, final: boolean): void;
  interrupted(): void;
}

/** For a builder that nobody watches. */
export const noMetrics: BuildMetrics = {
  started: () => undefined,
  succeeded: () => undefined,
  failed: () => undefined,
  interrupted: () => undefined,
};
