/** A number of nodes, or a share of them. */
export interface NodeLimit {
  readonly kind: 'count' | 'percent';
  readonly value: number;
}

/**
 * Reads `spec.maxUnavailable`, which the API server takes as any number or text, as MCO does:
 * GetScaledValueFromIntOrPercent reads a percentage by strconv.Atoi, with a sign and of any size.
 *
 * @returns undefined for a text that is no percentage.
 */
export function parseMaxUnavailable(setting: number | string = 1): NodeLimit | undefined {
  if (typeof setting === 'number') return { kind: 'count', value: Math.floor(setting) };
  const percent = /^([+-]?\d{1,9})%$/.exec(setting)?.[1];
  return percent === undefined ? undefined : { kind: 'percent', value: Number(percent) };
}

/**
 * How many nodes of a pool may be unavailable at once.
 *
 * A percentage rounds down and is at least 1, as in MCO; so is a number. A value that can't be read counts as 1, the
 * safest choice, because a typo must not stop the rollout. With a negative one nothing starts (pool-settings.ts).
 *
 * @param setting `spec.maxUnavailable`: a number, or a percentage such as "20%"; absent means 1.
 * @param nodes how many nodes the pool has.
 */
export function maxUnavailable(setting: number | string | undefined, nodes: number): number {
  const { kind, value } = parseMaxUnavailable(setting) ?? { kind: 'count', value: 1 };
  // Multiplied first: 0.29 * 100 is less than 29.
  const limit = kind === 'count' ? value : Math.floor((value * nodes) / 100);
  return limit === 0 ? 1 : limit;
}
