import { mebibytes } from '../files/free-space.ts';

/** What layers take on the disk, by what is fetched; MCO's estimate. */
const BYTES_PER_FETCHED_BYTE = 2;

/** Left free after the pull, so that the kubelet evicts no pod: MCO's 16 GiB. */
export const RESERVE_BYTES = 16 * 1024 ** 3;

/** What is known before anything is pulled. In bytes. */
export interface SpaceEstimate {
  readonly fetched: number;
  readonly free: number;
  readonly reserve: number;
  /** Where the runtime keeps images. */
  readonly directory: string;
}

/** @returns why the images may not be pulled; undefined where there is room for them. */
export function spaceProblem({ fetched, free, reserve, directory }: SpaceEstimate): string | undefined {
  const needed = fetched * BYTES_PER_FETCHED_BYTE;
  if (free - needed >= reserve) return undefined;
  return `too little space in ${directory}: the images may take ${mebibytes(needed)}, ${mebibytes(free)} are free, and ${mebibytes(reserve)} have to stay free`;
}
