import type { KubernetesObject } from '../api/object.ts';

interface Versioned {
  readonly metadata: Pick<KubernetesObject['metadata'], 'resourceVersion'>;
}

/** Resource versions of one kind compare as integers (KEP-5504); one that does not is never newer. */
export function isNewer(a: Versioned, b: Versioned): boolean {
  return versionOf(a) > versionOf(b);
}

function versionOf({ metadata }: Versioned): bigint {
  const text = metadata.resourceVersion ?? '';
  return /^\d+$/.test(text) ? BigInt(text) : 0n;
}
