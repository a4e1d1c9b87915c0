/** Characters of a short name, unless two would be the same. */
const SHORTEST = 8;
/** Hashes of rendered configs, images and layers. */
const HASH = /\b[0-9a-f]{16,}\b/g;

/**
 * @param texts all that is shown together.
 * @returns a function that shortens each hash in a text to its first characters, by which it is the only one in these
 *   texts.
 */
export function shortNames(texts: readonly string[]): (text: string) => string {
  const hashes = [...new Set(texts.flatMap((text) => text.match(HASH) ?? []))].toSorted();
  // In this order, the hashes with the longest common start are neighbours.
  const shortOf = new Map(
    hashes.map((hash, index) => {
      const shared = Math.max(common(hash, hashes[index - 1]), common(hash, hashes[index + 1]));
      return [hash, hash.slice(0, Math.max(SHORTEST, shared + 1))];
    }),
  );
  return (text) => text.replace(HASH, (hash) => shortOf.get(hash) ?? hash);
}

/** @returns how many characters both begin with. */
function common(hash: string, other = ''): number {
  let length = 0;
  while (length < hash.length && hash[length] === other[length]) length += 1;
  return length;
}
