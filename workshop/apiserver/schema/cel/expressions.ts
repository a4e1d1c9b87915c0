import { Environment, Optional } from '@marcbachmann/cel-js';
import { isArray, isObject, type Json } from '../../json.ts';
import type { StructuralSchema } from '../structural-schema.ts';
import { registerAddresses } from './addresses.ts';
import { registerAuthorizer } from './authorizer.ts';
import { registerFormats } from './formats.ts';
import { registerQuantities } from './quantities.ts';
import { javaScriptPattern, registerTexts } from './texts.ts';

/** An expression of the Common Expression Language, ready to be evaluated. */
export type Program = (variables: Readonly<Record<string, unknown>>) => unknown;

/** CEL with the libraries that the API server adds (Kubernetes, "CEL options, language features and libraries"). */
const KUBERNETES = [
  registerFormats,
  registerTexts,
  registerAddresses,
  registerQuantities,
  registerAuthorizer,
].reduce(
  (environment, register) => register(environment),
  new Environment({ unlistedVariablesAreDyn: false, enableOptionalTypes: true }),
);

/**
 * @param variables names that the expression may use.
 * @param optional those of them whose values are optional.
 * @throws Error for one that can't be parsed, or that names a variable or function that there is not.
 */
export function compileExpression(
  expression: string,
  variables: readonly string[],
  optional: readonly string[] = [],
): Program {
  const environment = KUBERNETES.clone();
  for (const name of variables) {
    environment.registerVariable(name, optional.includes(name) ? 'optional<dyn>' : 'dyn');
  }
  const program = environment.parse(javaScriptPattern(expression));
  const checked = program.check();
  if (!checked.valid) throw checked.error ?? new Error('the expression does not pass the type check');
  return (values) => program(values);
}

/**
 * @param schema the value's own, where it has one: a string of the format byte is bytes.
 * @returns a value as CEL sees it: whole numbers are int, which are bigints here.
 */
export function celValue(value: Json | undefined, schema?: StructuralSchema): unknown {
  if (isArray(value)) return value.map((item) => celValue(item, schema?.items));
  if (isObject(value)) {
    const fields: [string, unknown][] = [];
    for (const [field, inner] of Object.entries(value)) {
      if (inner === undefined) continue;
      fields.push([field, celValue(inner, schema?.properties.get(field) ?? schema?.additional)]);
    }
    return Object.fromEntries(fields);
  }
  if (typeof value === 'string' && schema?.limits.format === 'byte') {
    return new Uint8Array(Buffer.from(value, 'base64'));
  }
  return typeof value === 'number' && Number.isInteger(value) ? BigInt(value) : value;
}

/** @returns a value that may not be there, as CEL's optional type. */
export function celOptional(value: Json | undefined, schema: StructuralSchema): unknown {
  return value === undefined ? Optional.none() : Optional.of(celValue(value, schema));
}
