/**
 * How many nodes of a pool may be unavailable at once.
 *
 * A percentage rounds down and comes to at least 1, as in MCO; so does a number. What can't be read counts as 1, the
 * careful choice, because the field is an admin's and the rollout must not stand still over it.
 *
 * @param setting `spec.maxUnavailable`: a number, or a percentage such as "20%"; absent means 1.
 * @param nodes how many nodes the pool has.
 */
export function maxUnavailable(setting: number | string | undefined, nodes: number): number {
  if (setting === undefined) return 1;
  if (typeof setting === 'number') return Math.max(1, Math.floor(setting));
  const percent = /^(\d{1,3})%$/.exec(setting)?.[1];
  // Multiplied first: 0.29 * 100 is less than 29.
  return percent === undefined ? 1 : Math.max(1, Math.floor((Number(percent) * nodes) / 100));
}
