import { annotations } from '../../api/names.ts';
import type { KubernetesObject } from '../../api/object.ts';
import { by } from '../../api/order.ts';

/** An object of one kind, and the pools that it selects. */
export interface Selecting {
  readonly object: KubernetesObject;
  readonly pools: readonly string[];
}

/** MCO's limit: with two digits, 10 would come before 2 in the merge order. */
const HIGHEST = 9;

/**
 * The suffixes of generated MachineConfigs, by which they are merged: the object that was created last has the highest
 * and wins (MCO, getManagedKubeletConfigKey). A suffix stays with its object, so that nothing moves when another one is
 * deleted.
 *
 * @param objects all of one kind.
 * @returns the suffix by the object's name, '' for the first; none for an object without pools, and undefined where 9
 *   is taken.
 */
export function nameSuffixes(objects: readonly Selecting[]): ReadonlyMap<string, string | undefined> {
  const ordered = objects
    .filter(({ pools }) => pools.length > 0)
    .toSorted(by(({ object: { metadata } }) => `${metadata.creationTimestamp ?? '~'} ${metadata.name}`));
  const taken = new Map<string, string>();
  const rivals = ({ pools }: Selecting) =>
    ordered.flatMap((other) => {
      const suffix = taken.get(other.object.metadata.name);
      const shares = other.pools.some((pool) => pools.includes(pool));
      return suffix !== undefined && shares ? [suffix] : [];
    });
  // An object that was copied with its annotation has the suffix of another one: the older one keeps it.
  for (const each of ordered) {
    const recorded = recordedSuffix(each.object);
    if (recorded !== undefined && !rivals(each).includes(recorded))
      taken.set(each.object.metadata.name, recorded);
  }
  const result = new Map<string, string | undefined>(taken);
  for (const each of ordered) {
    const { name } = each.object.metadata;
    if (taken.has(name)) continue;
    const others = rivals(each);
    const next = others.length === 0 ? 0 : Math.max(...others.map(Number)) + 1;
    const suffix = next === 0 ? '' : String(next);
    if (next <= HIGHEST) taken.set(name, suffix);
    result.set(name, next <= HIGHEST ? suffix : undefined);
  }
  return result;
}

/** @returns undefined where the annotation is missing or is no suffix. */
export function recordedSuffix({ metadata }: KubernetesObject): string | undefined {
  const value = metadata.annotations?.[annotations.nameSuffix];
  return value !== undefined && /^[1-9]?$/.test(value) ? value : undefined;
}
