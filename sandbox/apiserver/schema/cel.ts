import { Environment } from '@marcbachmann/cel-js';
import { isArray, isObject, type Json } from '../json.ts';

/** An expression of the Common Expression Language, ready to be evaluated. */
export type Program = (variables: Readonly<Record<string, unknown>>) => unknown;

/**
 * @param variables names that the expression may use.
 * @throws Error for one that can't be parsed.
 */
export function compileExpression(expression: string, variables: readonly string[]): Program {
  const environment = new Environment({ unlistedVariablesAreDyn: false, enableOptionalTypes: true });
  for (const name of variables) environment.registerVariable(name, 'dyn');
  const program = environment.parse(expression);
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
