import { byCodeUnit } from '../json.ts';
import { union } from './field-set.ts';
import { type Ownership, type Ownerships, ownerKey } from './managed-fields.ts';

/** apimachinery, DefaultMaxUpdateManagers. */
const MOST_UPDATERS = 10;

/** Has what owners of long ago had, where there are too many. */
const ANCIENT = 'ancient-changes';

/**
 * @returns the ownerships with at most ten owners who update: those who wrote longest ago become one for each version
 *   (apimachinery, capUpdateManagers). Who applies is never dropped.
 */
export function fewerUpdaters(ownerships: Ownerships): Ownerships {
  const updaters = [...ownerships].filter(([, { operation }]) => operation === 'Update');
  let excess = updaters.length - MOST_UPDATERS;
  if (excess <= 0) return ownerships;
  const left = new Map(ownerships);
  const first = new Map<string, string>();
  const oldest = updaters.sort(
    ([a, { time: since = '' }], [b, { time: other = '' }]) => byCodeUnit(since, other) || byCodeUnit(a, b),
  );
  for (const [key, ownership] of oldest) {
    if (excess <= 0) break;
    const { apiVersion } = ownership;
    const ofVersion = first.get(apiVersion);
    if (ofVersion === undefined) {
      first.set(apiVersion, key);
      continue;
    }
    const bucket = { manager: ANCIENT, operation: 'Update', subresource: '', apiVersion } as const;
    const bucketKey = ownerKey(bucket);
    const before = left.get(bucketKey) ?? left.get(ofVersion);
    if (before === undefined) continue;
    if (!left.has(bucketKey)) left.delete(ofVersion);
    left.delete(key);
    left.set(bucketKey, merged(bucket, before, ownership));
    excess -= 1;
  }
  return left;
}

function merged(
  bucket: Pick<Ownership, 'manager' | 'operation' | 'subresource' | 'apiVersion'>,
  before: Ownership,
  { fields, time }: Ownership,
): Ownership {
  return { ...bucket, fields: union(fields, before.fields), time };
}
