import { Environment, Optional } from '@marcbachmann/cel-js';
import { isArray, isObject, type Json } from '../json.ts';

/** An expression of the Common Expression Language, ready to be evaluated. */
export type Program = (variables: Readonly<Record<string, unknown>>) => unknown;

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
  const environment = new Environment({ unlistedVariablesAreDyn: false, enableOptionalTypes: true });
  for (const name of variables) {
    environment.registerVariable(name, optional.includes(name) ? 'optional<dyn>' : 'dyn');
  }
  const program = environment.parse(expression);
  const checked = program.check();
  if (!checked.valid) throw checked.error ?? new Error('the expression does not pass the type check');
  return (values) => program(values);
}

/** @returns a value as CEL sees it: whole numbers are int, which are bigints here. */
export function celValue(value: Json | undefined): unknown {
  if (isArray(value)) return value.map(celValue);
  if (isObject(value)) {
    return Object.fromEntries(
      Object.entries(value).flatMap(([field, inner]) =>
        inner === undefined ? [] : [[field, celValue(inner)]],
      ),
    );
  }
  return typeof value === 'number' && Number.isInteger(value) ? BigInt(value) : value;
}

/** @returns a value that may not be there, as CEL's optional type. */
export function celOptional(value: Json | undefined): unknown {
  return value === undefined ? Optional.none() : Optional.of(celValue(value));
}
