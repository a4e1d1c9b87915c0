import { isObject, type JsonObject } from '../json.ts';
import type { Schema } from '../resources/resource.ts';
import type { Cause } from '../status.ts';
import { applyDefaults, prune } from './fill.ts';
import { compileRules } from './rules.ts';
import { parseSchema } from './structural-schema.ts';
import { problem, validate } from './validate.ts';

/** With one of these the value isn't what rules may rely on, so they are not asked (apiextensions, hasBlockingErr). */
const BLOCKING: readonly string[] = [
  'FieldValueRequired',
  'FieldValueTooLong',
  'FieldValueTooMany',
  'FieldValueTypeInvalid',
];

const NOT_CHECKED: Cause = problem(
  'FieldValueInvalid',
  '',
  'Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation',
);

/**
 * Compiles the schema of a custom resource.
 *
 * @throws Error that names the place, for a schema that is not structural or a rule that can't be parsed.
 */
export function compileSchema(openAPIV3Schema: JsonObject): Schema {
  const schema = parseSchema(openAPIV3Schema);
  const rules = compileRules(schema);
  return {
    admit(given, old) {
      const filled = applyDefaults(schema, prune(schema, given, true));
      const object = isObject(filled) ? filled : given;
      const problems = validate(schema, object);
      if (rules === undefined) return { object, problems };
      if (problems.some(({ reason }) => BLOCKING.includes(reason))) {
        return { object, problems: [...problems, NOT_CHECKED] };
      }
      return { object, problems: [...problems, ...rules(object, old, '')] };
    },
  };
}
