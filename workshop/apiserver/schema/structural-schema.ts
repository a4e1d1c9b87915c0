import {
  at,
  isArray,
  isObject,
  type Json,
  type JsonObject,
  objectsAt,
  stringAt,
  stringsAt,
} from '../json.ts';
import { javaScriptPattern } from './cel/texts.ts';

export type JsonType = 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean';

/** x-kubernetes-validations, one rule. */
export interface ValidationRule {
  readonly rule: string;
  readonly message?: string;
  readonly messageExpression?: string;
  readonly reason: string;
  readonly fieldPath?: string;
  readonly optionalOldSelf: boolean;
}

/** What a schema says about a value, beside what it may hold. */
export interface ValueLimits {
  readonly enum?: readonly Json[];
  readonly pattern?: { readonly text: string; readonly regExp: RegExp };
  readonly format?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum: boolean;
  readonly exclusiveMaximum: boolean;
  readonly multipleOf?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly uniqueItems: boolean;
  readonly required: readonly string[];
  readonly allOf: readonly StructuralSchema[];
  readonly anyOf: readonly StructuralSchema[];
  readonly oneOf: readonly StructuralSchema[];
  readonly not?: StructuralSchema;
}

/** A structural schema (apiextensions, "Specifying a structural schema"), read once. */
export interface StructuralSchema {
  readonly type?: JsonType;
  readonly nullable: boolean;
  readonly properties: ReadonlyMap<string, StructuralSchema>;
  /** Of the properties that have one. */
  readonly defaults: readonly (readonly [field: string, value: Json])[];
  /** What fields without a property of their own hold. */
  readonly additional?: StructuralSchema;
  readonly items?: StructuralSchema;
  readonly preserveUnknownFields: boolean;
  readonly intOrString: boolean;
  readonly embeddedResource: boolean;
  readonly listType?: 'atomic' | 'set' | 'map';
  readonly listMapKeys: readonly string[];
  readonly default?: Json;
  readonly limits: ValueLimits;
  readonly rules: readonly ValidationRule[];
}

const TYPES: readonly string[] = ['object', 'array', 'string', 'integer', 'number', 'boolean'];

/**
 * Reads an openAPIV3Schema.
 *
 * @throws Error that names the place, for one that is not structural or a pattern that is none.
 */
export function parseSchema(schema: JsonObject, path = 'openAPIV3Schema'): StructuralSchema {
  const type = typeOf(schema, path);
  const additional = schema['additionalProperties'];
  const items = schema['items'];
  const properties = isObject(schema['properties']) ? schema['properties'] : {};
  const listType = stringAt(schema, 'x-kubernetes-list-type');
  const own = Object.entries(properties).flatMap(([name, value]) =>
    isObject(value) ? [[name, parseSchema(value, `${path}.properties[${name}]`)] as const] : [],
  );
  return {
    ...(type === undefined ? {} : { type }),
    nullable: schema['nullable'] === true,
    properties: new Map(own),
    defaults: own.flatMap(([name, { default: value }]) =>
      value === undefined ? [] : [[name, value] as const],
    ),
    ...(isObject(additional) ? { additional: parseSchema(additional, `${path}.additionalProperties`) } : {}),
    ...(isObject(items) ? { items: parseSchema(items, `${path}.items`) } : {}),
    preserveUnknownFields: schema['x-kubernetes-preserve-unknown-fields'] === true || additional === true,
    intOrString: schema['x-kubernetes-int-or-string'] === true,
    embeddedResource: schema['x-kubernetes-embedded-resource'] === true,
    ...(listType === 'atomic' || listType === 'set' || listType === 'map' ? { listType } : {}),
    listMapKeys: stringsAt(schema, 'x-kubernetes-list-map-keys'),
    ...(schema['default'] === undefined ? {} : { default: schema['default'] }),
    limits: limitsOf(schema, path),
    rules: objectsAt(schema, 'x-kubernetes-validations').map(parseRule),
  };
}

function typeOf(schema: JsonObject, path: string): JsonType | undefined {
  const type = schema['type'];
  if (typeof type === 'string' && TYPES.includes(type)) return type as JsonType;
  const free =
    schema['x-kubernetes-int-or-string'] === true || schema['x-kubernetes-preserve-unknown-fields'] === true;
  // Parts of allOf and its like say only what they add.
  if (type === undefined && (free || /\.(allOf|anyOf|oneOf|not)\b/.test(path))) return undefined;
  throw new Error(
    `${path}.type: ${type === undefined ? 'Required value: must not be empty' : `${String(type)} is no type`}`,
  );
}

function parseRule(given: JsonObject): ValidationRule {
  const message = stringAt(given, 'message');
  const messageExpression = stringAt(given, 'messageExpression');
  const fieldPath = stringAt(given, 'fieldPath');
  return {
    rule: stringAt(given, 'rule') ?? '',
    ...(message === undefined ? {} : { message }),
    ...(messageExpression === undefined ? {} : { messageExpression }),
    reason: stringAt(given, 'reason') ?? 'FieldValueInvalid',
    ...(fieldPath === undefined ? {} : { fieldPath }),
    optionalOldSelf: given['optionalOldSelf'] === true,
  };
}

const NUMBERS = [
  'minLength',
  'maxLength',
  'minimum',
  'maximum',
  'multipleOf',
  'minItems',
  'maxItems',
  'minProperties',
  'maxProperties',
] as const;

function limitsOf(schema: JsonObject, path: string): ValueLimits {
  const numbers = NUMBERS.flatMap((name) => {
    const value = schema[name];
    return typeof value === 'number' ? [[name, value] as const] : [];
  });
  const pattern = stringAt(schema, 'pattern');
  const format = stringAt(schema, 'format');
  const allowed = schema['enum'];
  const not = schema['not'];
  const parts = (name: 'allOf' | 'anyOf' | 'oneOf') =>
    objectsAt(schema, name).map((part, i) => parseSchema(part, `${path}.${name}[${i}]`));
  return {
    ...Object.fromEntries(numbers),
    ...(isArray(allowed) ? { enum: allowed } : {}),
    ...(pattern === undefined ? {} : { pattern: { text: pattern, regExp: regExpOf(pattern, path) } }),
    ...(format === undefined ? {} : { format }),
    exclusiveMinimum: at(schema, 'exclusiveMinimum') === true,
    exclusiveMaximum: at(schema, 'exclusiveMaximum') === true,
    uniqueItems: schema['uniqueItems'] === true,
    required: stringsAt(schema, 'required'),
    allOf: parts('allOf'),
    anyOf: parts('anyOf'),
    oneOf: parts('oneOf'),
    ...(isObject(not) ? { not: parseSchema(not, `${path}.not`) } : {}),
  };
}

function regExpOf(text: string, path: string): RegExp {
  const pattern = javaScriptPattern(text);
  try {
    return new RegExp(pattern, 'u');
  } catch {
    // Go's syntax allows escapes that the `u` flag forbids, such as `\-` outside of a class.
  }
  try {
    return new RegExp(pattern);
  } catch (error) {
    throw new Error(`${path}.pattern: ${JSON.stringify(pattern)} is no regular expression`, { cause: error });
  }
}
