import { equal, isArray, isObject, type Json, type JsonObject } from '../json.ts';
import type { Cause } from '../status.ts';
import { isUnchanged, oldField, oldItem } from './ratcheting.ts';
import type { JsonType, StructuralSchema } from './structural-schema.ts';

/**
 * Holds a value against its schema, and says what is wrong in the API server's words
 * (k8s.io/kube-openapi/pkg/validation).
 *
 * @param path of the value, `` for the whole object.
 * @param old what the value was before, where there was one: what an update leaves as it was may stay invalid.
 */
export function validate(
  schema: StructuralSchema,
  value: Json,
  path = '',
  old?: Json | undefined,
): readonly Cause[] {
  if (value === null && schema.nullable) return [];
  if (isUnchanged(schema, value, old)) return [];
  const wrong = wrongType(schema, value, path);
  if (wrong !== undefined) return [wrong];
  return [
    ...ownProblems(schema, value, path),
    ...combinations(schema, value, path),
    ...within(schema, value, path, old),
  ];
}

export function problem(reason: string, path: string, message: string): Cause {
  return { reason, field: path === '' ? '<nil>' : path, message };
}

const inBody = (path: string, value: Json, why: string): Cause =>
  problem('FieldValueInvalid', path, `Invalid value: ${shown(value)}: ${path} in body ${why}`);

/** Values in messages: an object or a list by its type alone. */
function shown(value: Json): string {
  if (isArray(value)) return '"array"';
  return isObject(value) ? '"object"' : JSON.stringify(value);
}

function typeName(value: Json): string {
  if (value === null) return 'null';
  if (isArray(value)) return 'array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number';
  return typeof value;
}

function wrongType(schema: StructuralSchema, value: Json, path: string): Cause | undefined {
  const actual = typeName(value);
  const wanted: readonly JsonType[] = schema.intOrString ? ['integer', 'string'] : typesOf(schema);
  if (
    wanted.length === 0 ||
    wanted.some((type) => type === actual || (type === 'number' && actual === 'integer'))
  ) {
    return undefined;
  }
  const names = wanted.join(',');
  return problem(
    'FieldValueTypeInvalid',
    path,
    `Invalid value: ${JSON.stringify(actual)}: ${path} in body must be of type ${names}: ${JSON.stringify(actual)}`,
  );
}

const typesOf = ({ type }: StructuralSchema): readonly JsonType[] => (type === undefined ? [] : [type]);

function ownProblems(schema: StructuralSchema, value: Json, path: string): readonly Cause[] {
  return [
    ...enumProblems(schema, value, path),
    ...(typeof value === 'string' ? stringProblems(schema, value, path) : []),
    ...(typeof value === 'number' ? numberProblems(schema, value, path) : []),
    ...(isArray(value) ? listProblems(schema, value, path) : []),
    ...(isObject(value) ? objectProblems(schema, value, path) : []),
  ];
}

function enumProblems({ limits }: StructuralSchema, value: Json, path: string): readonly Cause[] {
  if (limits.enum === undefined || limits.enum.some((allowed) => equal(allowed, value))) return [];
  const supported = limits.enum.map((allowed) => JSON.stringify(allowed)).join(', ');
  const message = `Unsupported value: ${shown(value)}: supported values: ${supported}`;
  return [problem('FieldValueNotSupported', path, message)];
}

function stringProblems({ limits }: StructuralSchema, value: string, path: string): readonly Cause[] {
  const { minLength, maxLength, pattern, format } = limits;
  const length = [...value].length;
  const problems: Cause[] = [];
  if (maxLength !== undefined && length > maxLength) {
    problems.push(problem('FieldValueTooLong', path, `Too long: may not be more than ${maxLength} bytes`));
  }
  if (minLength !== undefined && length < minLength) {
    problems.push(inBody(path, value, `should be at least ${minLength} chars long`));
  }
  if (pattern !== undefined && !pattern.regExp.test(value)) {
    problems.push(inBody(path, value, `should match '${pattern.text}'`));
  }
  const bad = format === undefined ? undefined : formatProblem(format, value);
  return bad === undefined ? problems : [...problems, inBody(path, value, bad)];
}

function numberProblems({ limits }: StructuralSchema, value: number, path: string): readonly Cause[] {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = limits;
  const problems: Cause[] = [];
  if (minimum !== undefined && (value < minimum || (exclusiveMinimum && value === minimum))) {
    problems.push(
      inBody(path, value, `should be greater than ${exclusiveMinimum ? '' : 'or equal to '}${minimum}`),
    );
  }
  if (maximum !== undefined && (value > maximum || (exclusiveMaximum && value === maximum))) {
    problems.push(
      inBody(path, value, `should be less than ${exclusiveMaximum ? '' : 'or equal to '}${maximum}`),
    );
  }
  if (multipleOf !== undefined && !isMultiple(value, multipleOf)) {
    problems.push(inBody(path, value, `should be a multiple of ${multipleOf}`));
  }
  return problems;
}

/** 0.3 is three times 0.1, whatever their binary forms say. */
function isMultiple(value: number, of: number): boolean {
  const quotient = value / of;
  return Math.abs(quotient - Math.round(quotient)) < 1e-9;
}

function listProblems(schema: StructuralSchema, value: readonly Json[], path: string): readonly Cause[] {
  const { minItems, maxItems } = schema.limits;
  const problems: Cause[] = [];
  if (maxItems !== undefined && value.length > maxItems) {
    problems.push(
      problem('FieldValueTooMany', path, `Too many: ${value.length}: must have at most ${maxItems} items`),
    );
  }
  if (minItems !== undefined && value.length < minItems) {
    const message = `Invalid value: ${value.length}: ${path} in body should have at least ${minItems} items`;
    problems.push(problem('FieldValueInvalid', path, message));
  }
  return problems;
}

function objectProblems(schema: StructuralSchema, value: JsonObject, path: string): readonly Cause[] {
  const { required, minProperties, maxProperties } = schema.limits;
  const problems = required
    .filter((field) => !Object.hasOwn(value, field) || value[field] === undefined)
    .map((field) => problem('FieldValueRequired', child(path, field), 'Required value'));
  const size = Object.keys(value).length;
  if (maxProperties !== undefined && size > maxProperties) {
    problems.push(
      problem('FieldValueTooMany', path, `Too many: ${size}: must have at most ${maxProperties} items`),
    );
  }
  if (minProperties !== undefined && size < minProperties) {
    problems.push(inBody(path, value, `should have at least ${minProperties} properties`));
  }
  return problems;
}

export function child(path: string, field: string): string {
  return path === '' ? field : `${path}.${field}`;
}

/** allOf, anyOf, oneOf and not. */
function combinations({ limits }: StructuralSchema, value: Json, path: string): readonly Cause[] {
  const { allOf, anyOf, oneOf, not } = limits;
  const fits = (schema: StructuralSchema) => validate(schema, value, path).length === 0;
  const problems = allOf.flatMap((schema) => validate(schema, value, path));
  if (anyOf.length > 0 && !anyOf.some(fits)) {
    problems.push(inBody(path, value, 'must validate at least one schema (anyOf)'));
  }
  if (oneOf.length > 0 && oneOf.filter(fits).length !== 1) {
    problems.push(inBody(path, value, 'must validate one and only one schema (oneOf)'));
  }
  if (not !== undefined && fits(not))
    problems.push(inBody(path, value, 'must not validate the schema (not)'));
  return problems;
}

function within(
  schema: StructuralSchema,
  value: Json,
  path: string,
  old: Json | undefined,
): readonly Cause[] {
  if (isArray(value)) {
    const { items } = schema;
    if (items === undefined) return [];
    return value.flatMap((item, i) => validate(items, item, `${path}[${i}]`, oldItem(schema, item, old)));
  }
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([field, inner]) => {
    const own = schema.properties.get(field) ?? schema.additional;
    if (own === undefined || inner === undefined) return [];
    return validate(own, inner, child(path, field), oldField(field, old));
  });
}

/** Formats that the API server checks (apiextensions, "supported formats"); any other is a note for readers. */
const FORMATS: Readonly<Record<string, (value: string) => boolean>> = {
  'date-time': (value) =>
    /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i.test(value) &&
    !Number.isNaN(Date.parse(value)),
  date: (value) => /^\d{4}-\d\d-\d\d$/.test(value) && !Number.isNaN(Date.parse(value)),
  byte: (value) => /^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(value),
  uuid: (value) => /^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$/i.test(value),
  ipv4: (value) => /^((25[0-5]|2[0-4]\d|1?\d?\d)(\.|$)){4}$/.test(value),
};

/** @returns what is wrong with a string of a format; undefined for nothing, or a format that isn't checked. */
function formatProblem(format: string, value: string): string | undefined {
  const check = FORMATS[format];
  return check === undefined || check(value)
    ? undefined
    : `must be of type ${format}: ${JSON.stringify(value)}`;
}
