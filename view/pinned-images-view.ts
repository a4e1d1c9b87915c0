import type { MachineConfigNode } from '../api/machine-config-node.ts';
import { noun, plural } from '../api/plural.ts';
import { hasPinnedImages } from '../machineconfig/pinned-image-sets.ts';

/** How far the nodes of a pool are with the images that they have to keep. */
export interface PinnedImagesView {
  /** Nodes that have to keep images. */
  readonly nodes: number;
  /** Those that have all of them, in the generations that are asked for. */
  readonly complete: number;
  /** Why the others don't, where a node says so; by name. */
  readonly problems: readonly { readonly node: string; readonly why: string }[];
}

/** @returns undefined where no node has to keep any. */
export function pinnedImagesView(members: readonly MachineConfigNode[]): PinnedImagesView | undefined {
  const concerned = members.filter(({ spec }) => spec.pinnedImages !== undefined);
  if (concerned.length === 0) return undefined;
  return {
    nodes: concerned.length,
    complete: concerned.filter(hasPinnedImages).length,
    problems: concerned.flatMap(({ metadata, status }) => {
      const degraded = status?.conditions?.find(({ type }) => type === 'PinnedImageSetsDegraded');
      return degraded?.status === 'True' ? [{ node: metadata.name, why: degraded.message }] : [];
    }),
  };
}

/** Nodes whose problem is named; the others are in `-o json`. */
const NAMED = 3;

/** @returns the line about a pool, if it is news: nothing while every node has its images. */
export function pinnedImagesLines(pool: string, view: PinnedImagesView | undefined): string[] {
  if (view === undefined || (view.complete === view.nodes && view.problems.length === 0)) return [];
  const { nodes, complete, problems } = view;
  const more = problems.length - NAMED;
  const parts = [
    `pool ${pool}: pinned images are complete on ${complete} of ${plural(nodes, 'node')}`,
    ...problems.slice(0, NAMED).map(({ node, why }) => `${node}: ${why}`),
    ...(more > 0 ? [`and ${more} more ${noun(more, 'node')}`] : []),
  ];
  return [parts.join('; ')];
}
