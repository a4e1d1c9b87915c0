import { availableParallelism } from 'node:os';

/**
 * Tries points from 0 up, as many at once as there are processors, until one lies beyond the last.
 *
 * @param attempt tells whether there was such a point.
 * @returns how many points there are. @throws what an attempt throws.
 */
export async function tryEveryPoint(attempt: (point: number) => Promise<boolean>): Promise<number> {
  let next = 0;
  let points = Number.POSITIVE_INFINITY;
  const lane = async () => {
    while (next < points) {
      const point = next;
      next += 1;
      if (!(await attempt(point))) points = Math.min(points, point);
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, lane));
  return points;
}
