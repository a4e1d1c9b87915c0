import { quote } from '../problem.ts';
import { type FieldType, typeOfField } from './kubelet-fields.ts';
import { parseGoDuration, parseQuantity } from './quantities.ts';

/** What is wrong with a value, as two parts of a Problem. */
interface Mistyped {
  readonly reason: string;
  readonly expected: string;
}

const isText = (value: unknown) => typeof value === 'string';
const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const every = (value: unknown, is: (item: unknown) => boolean) => Array.isArray(value) && value.every(is);
const everyValue = (value: unknown, is: (item: unknown) => boolean) =>
  isObject(value) && Object.values(value).every(is);
/** int64 of Go in JSON: 2^53 is beyond what any of these fields means. */
const isLong = (value: unknown) => Number.isSafeInteger(value);
const isInteger = (value: unknown) => isLong(value) && Number(value) >= -(2 ** 31) && Number(value) < 2 ** 31;
const isQuantity = (value: unknown) =>
  (typeof value === 'string' || typeof value === 'number') && parseQuantity(value) !== undefined;

const checks: Readonly<Record<FieldType, readonly [is: (value: unknown) => boolean, words: string]>> = {
  boolean: [(value) => typeof value === 'boolean', 'true or false'],
  integer: [isInteger, 'an integer of 32 bits'],
  long: [isLong, 'an integer'],
  number: [(value) => typeof value === 'number', 'a number'],
  string: [isText, 'a string'],
  duration: [
    (value) => typeof value === 'string' && parseGoDuration(value) !== undefined,
    'a duration such as 10s',
  ],
  quantity: [(value) => isText(value) && isQuantity(value), 'a quantity such as 50Mi'],
  strings: [(value) => every(value, isText), 'a list of strings'],
  integers: [(value) => every(value, isInteger), 'a list of integers of 32 bits'],
  objects: [(value) => every(value, isObject), 'a list of objects'],
  object: [isObject, 'an object'],
  'strings by name': [(value) => everyValue(value, isText), 'strings by name'],
  'quantities by name': [
    (value) => everyValue(value, (item) => isText(item) && isQuantity(item)),
    'quantities by name, as strings',
  ],
  'booleans by name': [(value) => everyValue(value, (item) => typeof item === 'boolean'), 'booleans by name'],
};

/**
 * Checks a field's value by the JSON type of the field.
 *
 * @returns undefined for a value of the right type, and for a field that this version doesn't know.
 */
export function fieldTypeProblem(name: string, value: unknown): Mistyped | undefined {
  const type = typeOfField(name);
  const [is, expected] = type === undefined ? [undefined, 'no null: leave the field out'] : checks[type];
  // In a drop-in, null would take the field out of the host's own file (RFC 7386).
  if (hasNull(value)) return { reason: 'has a null', expected: `${expected}, without null` };
  if (is === undefined || is(value)) return undefined;
  const other = isObject(value) ? 'an object' : String(value);
  const shown = typeof value === 'string' ? quote(value) : Array.isArray(value) ? 'a list' : other;
  return { reason: `is ${shown}`, expected };
}

function hasNull(value: unknown): boolean {
  if (value === null) return true;
  return typeof value === 'object' && Object.values(value as object).some(hasNull);
}
