import { type Current, nodeConfigOf, type StandardCurrent } from '../records/current.ts';
import { readImageConfig } from '../records/image-config.ts';
import type { LeftOut } from '../records/left-out.ts';
import type { Drift } from './drift/drift.ts';
import type { ManagedContent } from './entries/desired-tree.ts';

/**
 * @param root the running root. @param current what the node runs.
 * @returns what Shale manages there; undefined on a node that Shale has not configured, or whose image carries no
 *   config.
 * @throws PrepareRefused when the config can't be read.
 */
export async function managedContent(
  root: string,
  current: Current | undefined,
): Promise<ManagedContent | undefined> {
  switch (current?.mode) {
    case undefined:
      return undefined;
    case 'Standard':
      return standardContent(current);
    case 'Layered':
      // The running /usr is the image's, also after it was applied live.
      return carriedBy(root);
  }
}

/** @returns what standard mode writes. @throws PrepareRefused when the config can't be read. */
export function standardContent({ rendered }: StandardCurrent): ManagedContent {
  return { delivery: 'Standard', config: nodeConfigOf(rendered) };
}

/** @returns what the image carries whose tree lies in `root`; undefined for one that was made of no config. */
export async function carriedBy(root: string): Promise<ManagedContent | undefined> {
  const config = await readImageConfig(root);
  return config === undefined ? undefined : { delivery: 'Layered', config };
}

/** @returns whether only an image brings what has this name. @param name without links. */
export function isOfImage(name: string): boolean {
  return name.startsWith('/usr/');
}

/** @returns those that an update could have brought: the node knows the owners. */
export function withKnownOwner(drifts: readonly Drift[]): readonly Drift[] {
  return drifts.filter(({ what }) => what !== 'account');
}

/** What differs from content, by whose doing. */
export interface DriftsByCause {
  /** Somebody has changed it: an update neither overwrites it nor carries it along. */
  readonly byHand: readonly Drift[];
  /** The last update did not bring it, and nobody has changed it since. */
  readonly leftOut: readonly Drift[];
}

/** @param leftOut what the last update is on record to have left out, if anything. */
export function byCause(drifts: readonly Drift[], leftOut: LeftOut | undefined): DriftsByCause {
  const known = new Set(leftOut?.differing);
  const isLeftOut = ({ what, message }: Drift) => what === 'account' || known.has(message);
  return {
    byHand: drifts.filter((drift) => !isLeftOut(drift)),
    leftOut: drifts.filter(isLeftOut),
  };
}
