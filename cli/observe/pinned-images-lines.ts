import { noun, plural } from '../../api/plural.ts';
import type { PoolView } from '../../view/schemas.ts';

/** Nodes whose problem is named; the others are in `-o json`. */
const NAMED = 3;

/** @returns the line about a pool, if it is news: nothing while every node has its images. */
export function pinnedImagesLines({
  name,
  pinnedImages: view,
}: Pick<PoolView, 'name' | 'pinnedImages'>): string[] {
  if (view === undefined || (view.complete === view.nodes && view.problems.length === 0)) return [];
  const { nodes, complete, problems } = view;
  const more = problems.length - NAMED;
  const parts = [
    `pool ${name}: pinned images are complete on ${complete} of ${plural(nodes, 'node')}`,
    ...problems.slice(0, NAMED).map(({ node, why }) => `${node}: ${why}`),
    ...(more > 0 ? [`and ${more} more ${noun(more, 'node')}`] : []),
  ];
  return [parts.join('; ')];
}
