/** `T` with every key whose value may be undefined made optional, and undefined removed from its type. */
export type Present<T> = {
  [K in keyof T as undefined extends T[K] ? never : K]: T[K];
} & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

/**
 * Drops the keys whose value is undefined: `{ name, ...present({ host }) }`. With exactOptionalPropertyTypes an
 * optional property is either absent or has a value, and an object that is serialized or compared must not have the key
 * at all.
 *
 * @returns a copy of the own enumerable properties that have a value; null, false, 0 and '' are values.
 */
export function present<T extends object>(properties: T): Present<T> {
  // A loop: half of a rollout's objects go through here.
  const kept: Record<string, unknown> = {};
  for (const key of Object.keys(properties)) {
    const value = properties[key as keyof T];
    if (value !== undefined) kept[key] = value;
  }
  return kept as Present<T>;
}
