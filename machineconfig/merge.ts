import type { IgnitionConfig, IgnitionFile } from './ignition/config.ts';
import { ignition3 } from './ignition/config.ts';
import { IGNITION_VERSION } from './ignition/parse.ts';
import {
  identityOf,
  type ListSchema,
  type Schema,
  type StructSchema,
  type StructValue,
  type Value,
} from './ignition/schema.ts';

/**
 * Merges Ignition configs, earlier ones first, with Ignition 3's rules (config/merge of coreos/ignition) and MCO's
 * additions (MergeMachineConfigs):
 *
 * - a field that a later config sets replaces the earlier one, an empty string too; an absent field changes nothing;
 * - list entries of one identity merge and keep the place of the first; new entries come after; a file, directory or
 *   link replaces an entry of another kind at its path; lists without identities are appended;
 * - a file of a later config that names no compression clears the earlier one's, even if it has no contents itself;
 * - `overwrite` defaults to true: nodes write files whether or not they exist.
 *
 * Verification hashes of files are left out: each was checked in its own config, and merging could put one config's
 * hash beside another's source, a mismatch that MCO's daemon overlooks.
 *
 * Every entry is processed once: the time grows with the size of the configs, not with the square of their number.
 *
 * @param configs parsed and valid, in merge order
 * @param settledBefore keeps what files came to be, for a caller that merges the same ones again
 * @returns the merged config, with fields in the schema's order and nothing empty in it
 */
export function mergeIgnition(
  configs: readonly IgnitionConfig[],
  settledBefore: WeakMap<IgnitionFile, IgnitionFile> = new WeakMap(),
): IgnitionConfig {
  const merged = new MergedStruct(schema);
  const seenFiles = new Set<string>();
  for (const config of configs) {
    // A parsed config is a struct value of its schema; the interfaces only name its fields.
    merged.absorb(withExplicitCompression(config, seenFiles) as unknown as StructValue);
  }
  const result = (merged.value() ?? {}) as unknown as IgnitionConfig;
  const files = result.storage?.files?.map((file) => {
    const settled = settledBefore.get(file) ?? settleFile(file);
    settledBefore.set(file, settled);
    return settled;
  });
  return {
    ...result,
    ignition: { ...result.ignition, version: IGNITION_VERSION },
    ...(files && { storage: { ...result.storage, files } }),
  };
}

const schema = structOf(ignition3);

function structOf(of: Schema): StructSchema {
  if (of.kind !== 'struct') {
    throw new TypeError(`a config is a struct, not a ${of.kind}`);
  }
  return of;
}

/** The empty compression takes part in merging and overrides an earlier one; settleFile takes it out again. */
function withExplicitCompression(config: IgnitionConfig, earlierPaths: Set<string>): IgnitionConfig {
  const files = config.storage?.files;
  if (files === undefined) {
    return config;
  }
  const explicit = files.map((file) =>
    earlierPaths.has(file.path) ? { ...file, contents: { compression: '', ...file.contents } } : file,
  );
  for (const file of files) {
    earlierPaths.add(file.path);
  }
  return { ...config, storage: { ...config.storage, files: explicit } };
}

/** Contents that need no change stay the same object, so that they aren't checked again. */
function settleFile(file: IgnitionFile): IgnitionFile {
  const { contents, overwrite = true } = file;
  if (contents?.compression === undefined && contents?.verification === undefined)
    return { ...file, overwrite };
  const { compression, verification: _verified, ...rest } = contents;
  return { ...file, contents: compression ? { compression, ...rest } : rest, overwrite };
}

type Merged = Value | MergedStruct | MergedList;

/** A struct that later values are merged into, field by field. */
class MergedStruct {
  readonly #schema: StructSchema;
  readonly #fields = new Map<string, Merged>();

  constructor(schema: StructSchema) {
    this.#schema = schema;
  }

  absorb(later: StructValue): void {
    for (const { name, schema: field } of this.#schema.fields) {
      const value = later[name];
      if (value !== undefined) {
        this.#absorbField(name, field, value);
      }
    }
  }

  #absorbField(name: string, schema: Schema, value: Value): void {
    if (schema.kind === 'struct') {
      const struct = this.#fields.get(name) ?? new MergedStruct(schema);
      if (struct instanceof MergedStruct && isStruct(value)) {
        struct.absorb(value);
        this.#fields.set(name, struct);
      }
    } else if (schema.kind === 'list') {
      const list = this.#fields.get(name) ?? new MergedList(schema);
      if (list instanceof MergedList && Array.isArray(value)) {
        list.absorb(value, this.#siblings(name));
        this.#fields.set(name, list);
      }
    } else {
      this.#fields.set(name, value);
    }
  }

  /** The other lists from which an entry of the same identity is removed. */
  #siblings(name: string): MergedList[] {
    if (!this.#schema.sharedIdentity.includes(name)) {
      return [];
    }
    return this.#schema.sharedIdentity
      .filter((other) => other !== name)
      .map((other) => this.#fields.get(other))
      .filter((other) => other instanceof MergedList);
  }

  value(): StructValue | undefined {
    const fields: Record<string, Value> = {};
    for (const { name } of this.#schema.fields) {
      const value = settled(this.#fields.get(name));
      if (value !== undefined) {
        fields[name] = value;
      }
    }
    return Object.keys(fields).length === 0 ? undefined : fields;
  }
}

class MergedList {
  readonly #schema: ListSchema;
  readonly #appended: Value[] = [];
  /** Setting a key again keeps its place, as the merging rules want it. */
  readonly #byIdentity = new Map<string, Value | MergedStruct>();

  constructor(schema: ListSchema) {
    this.#schema = schema;
  }

  absorb(later: readonly Value[], siblings: readonly MergedList[]): void {
    if (this.#schema.identity === undefined) {
      this.#appended.push(...later);
      return;
    }
    for (const entry of later) {
      const identity = identityOf(this.#schema, entry);
      for (const sibling of siblings) {
        sibling.#byIdentity.delete(identity);
      }
      this.#absorbEntry(identity, entry);
    }
  }

  /** An entry becomes mergeable only when a second one of its identity comes; most never do. */
  #absorbEntry(identity: string, entry: Value): void {
    const earlier = this.#byIdentity.get(identity);
    if (earlier === undefined || !isStruct(entry) || this.#schema.of.kind !== 'struct') {
      this.#byIdentity.set(identity, entry);
      return;
    }
    const { removesWithout } = this.#schema;
    if (removesWithout !== undefined && entry[removesWithout] === undefined) {
      this.#byIdentity.delete(identity);
      return;
    }
    const merged = earlier instanceof MergedStruct ? earlier : new MergedStruct(this.#schema.of);
    if (earlier !== merged && isStruct(earlier)) {
      merged.absorb(earlier);
    }
    merged.absorb(entry);
    this.#byIdentity.set(identity, merged);
  }

  value(): readonly Value[] | undefined {
    const values = [...this.#appended];
    for (const entry of this.#byIdentity.values()) {
      const value = settled(entry);
      if (value !== undefined) {
        values.push(value);
      }
    }
    return values.length === 0 ? undefined : values;
  }
}

function settled(merged: Merged | undefined): Value | undefined {
  return merged instanceof MergedStruct || merged instanceof MergedList ? merged.value() : merged;
}

function isStruct(value: Value | MergedStruct): value is StructValue {
  return typeof value === 'object' && !Array.isArray(value) && !(value instanceof MergedStruct);
}
