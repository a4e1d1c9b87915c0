import type { Report } from './report.ts';
import type { Field, ListSchema, Schema, StructSchema, StructValue, Value } from './schema.ts';

interface SpecVersion {
  readonly major: number;
  readonly minor: number;
}

type Segments = (string | number)[];

/**
 * Reads JSON by a schema, the way Go's encoding/json reads into Ignition's types, which is what MCO does: keys match
 * exactly or else without regard to case, null is absence, and unknown keys are dropped (here with a warning).
 *
 * @param schema what to read; its value is the root `$` of the paths in the report
 * @param json any JSON value
 * @param version the config's spec version; newer fields are dropped with a warning
 * @param report gets every problem, not just the first, and a warning for each key that was dropped
 * @returns the value, complete only if the report got no problems
 */
export function readBySchema<T>(schema: Schema<T>, json: unknown, version: SpecVersion, report: Report): T {
  const reader = new Reader(version, report);
  // This is where untyped JSON becomes typed.
  return (reader.value(schema, json) ?? {}) as T;
}

class Reader {
  readonly #version: SpecVersion;
  readonly #report: Report;
  readonly #segments: Segments = [];

  constructor(version: SpecVersion, report: Report) {
    this.#version = version;
    this.#report = report;
  }

  value(schema: Schema, json: unknown): Value | undefined {
    switch (schema.kind) {
      case 'text':
        return typeof json === 'string' ? json : this.#refuse(json, 'a string');
      case 'integer':
        return Number.isSafeInteger(json) ? (json as number) : this.#refuse(json, 'an integer');
      case 'flag':
        return typeof json === 'boolean' ? json : this.#refuse(json, 'true or false');
      case 'list':
        return Array.isArray(json) ? this.#list(schema, json) : this.#refuse(json, 'a list');
      case 'struct':
        return isObject(json) ? this.#struct(schema, json) : this.#refuse(json, 'an object');
    }
  }

  #list(schema: ListSchema, json: readonly unknown[]): Value[] {
    const values: Value[] = [];
    for (const [index, item] of json.entries()) {
      this.#segments.push(index);
      values.push(this.value(schema.of, item) ?? placeholder(schema.of));
      this.#segments.pop();
    }
    return values;
  }

  /** Fields come out in the schema's order, so that equal configs are equal byte for byte. */
  #struct(schema: StructSchema, json: Readonly<Record<string, unknown>>): StructValue {
    const keyOf = this.#matchKeys(schema, json);
    const value: Record<string, Value> = {};
    for (const field of schema.fields) {
      const key = keyOf(field);
      const given = key === undefined ? undefined : json[key];
      const present = key !== undefined && given !== null && given !== undefined;
      if (field.schema.required && (!present || given === '')) {
        this.#report.problem(
          this.#pathOf(field.name),
          present ? 'is empty' : 'is missing',
          'a non-empty string',
        );
        value[field.name] = placeholder(field.schema);
      } else if (present && this.#isKnown(field, key)) {
        this.#segments.push(key);
        const read = this.value(field.schema, given);
        this.#segments.pop();
        if (read !== undefined || field.schema.required) {
          value[field.name] = read ?? placeholder(field.schema);
        }
      }
    }
    return value;
  }

  /** The key of each field that is given. */
  #matchKeys(
    schema: StructSchema,
    json: Readonly<Record<string, unknown>>,
  ): (field: Field) => string | undefined {
    const given = Object.keys(json);
    // As nearly every config has them.
    if (given.every((key) => schema.names.has(key)))
      return ({ name }) => (Object.hasOwn(json, name) ? name : undefined);
    const keys = new Map<Field, string>();
    for (const key of given) {
      const field = schema.byLowerCase.get(key.toLowerCase());
      if (field === undefined) {
        this.#report.warning(
          this.#pathOf(key),
          'is not a field of the spec and has no effect',
          'no such key',
        );
      } else {
        keys.set(field, key);
      }
    }
    return (field) => keys.get(field);
  }

  #isKnown(field: Field, key: string): boolean {
    const { major, minor } = this.#version;
    const since = field.schema.since ?? 0;
    if (since <= minor) {
      return true;
    }
    const reason = `has no effect in version ${major}.${minor}.0`;
    this.#report.warning(this.#pathOf(key), reason, `ignition.version ${major}.${since}.0 or later`);
    return false;
  }

  #refuse(json: unknown, expected: string): undefined {
    this.#report.problem(formatPath(this.#segments), `is ${describe(json)}`, expected);
    return undefined;
  }

  #pathOf(key: string): string {
    return formatPath([...this.#segments, key]);
  }
}

/** A placeholder for a value that could not be read, so that other entries keep their index and can be checked. */
function placeholder(schema: Schema): Value {
  switch (schema.kind) {
    case 'text':
      return '';
    case 'integer':
      return 0;
    case 'flag':
      return false;
    case 'list':
      return [];
    case 'struct': {
      const required = schema.fields.filter((field) => field.schema.required);
      return Object.fromEntries(required.map((field) => [field.name, placeholder(field.schema)]));
    }
  }
}

function isObject(json: unknown): json is Readonly<Record<string, unknown>> {
  return typeof json === 'object' && json !== null && !Array.isArray(json);
}

/** Names the type, never the value: it may be a secret. */
function describe(json: unknown): string {
  if (json === null) {
    return 'null';
  }
  if (Array.isArray(json)) {
    return 'a list';
  }
  switch (typeof json) {
    case 'object':
      return 'an object';
    case 'number':
      return `the number ${json}`;
    default:
      return `a ${typeof json}`;
  }
}

function formatPath(segments: Segments): string {
  return segments.reduce<string>((path, segment) => {
    if (typeof segment === 'number') {
      return `${path}[${segment}]`;
    }
    return /^[A-Za-z_]\w{0,63}$/.test(segment)
      ? `${path}.${segment}`
      : `${path}[${JSON.stringify(segment.slice(0, 64))}]`;
  }, '$');
}
