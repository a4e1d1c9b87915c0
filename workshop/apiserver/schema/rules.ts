import { Environment, Optional } from '@marcbachmann/cel-js';
import { isArray, isObject, type Json } from '../json.ts';
import type { Cause } from '../status.ts';
import type { StructuralSchema, ValidationRule } from './structural-schema.ts';
import { child, mapKey, problem } from './validate.ts';

interface CompiledRule {
  readonly rule: ValidationRule;
  readonly holds: Program;
  readonly message?: Program;
  /** A rule about the change from the old value; it is not asked without one. */
  readonly transition: boolean;
}

/** @returns problems of a value, and of everything in it, by x-kubernetes-validations. */
export type RuleCheck = (value: Json, old: Json | undefined, path: string) => readonly Cause[];

/**
 * Compiles the rules of a schema (Kubernetes, "Validation rules").
 *
 * @returns undefined where there are none at any depth.
 * @throws Error that shows the rule, for one that can't be parsed.
 */
export function compileRules(schema: StructuralSchema): RuleCheck | undefined {
  const own = schema.rules.map(compileRule);
  const properties = new Map(
    [...schema.properties].flatMap(([field, inner]) => {
      const check = compileRules(inner);
      return check === undefined ? [] : [[field, check] as const];
    }),
  );
  const additional = schema.additional === undefined ? undefined : compileRules(schema.additional);
  const items = schema.items === undefined ? undefined : compileRules(schema.items);
  if (own.length === 0 && properties.size === 0 && additional === undefined && items === undefined)
    return undefined;
  return (value, old, path) => [
    ...own.flatMap((rule) => checkRule(rule, value, old, path)),
    ...checkItems(schema, items, value, old, path),
    ...checkFields((field) => properties.get(field) ?? additional, value, old, path),
  ];
}

function compileRule(rule: ValidationRule): CompiledRule {
  const compile = (expression: string): Program => {
    try {
      return compileExpression(expression, ['self', 'oldSelf'], rule.optionalOldSelf ? ['oldSelf'] : []);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      throw new Error(`the rule ${JSON.stringify(expression)} can't be compiled: ${why}`, { cause: error });
    }
  };
  return {
    rule,
    holds: compile(rule.rule),
    ...(rule.messageExpression === undefined ? {} : { message: compile(rule.messageExpression) }),
    transition: /\boldSelf\b/.test(rule.rule) && !rule.optionalOldSelf,
  };
}

function checkRule(
  { rule, holds, message, transition }: CompiledRule,
  value: Json,
  old: Json | undefined,
  path: string,
): readonly Cause[] {
  if (transition && old === undefined) return [];
  const oldSelf = rule.optionalOldSelf ? celOptional(old) : celValue(old);
  const variables = { self: celValue(value), oldSelf };
  const at = rule.fieldPath === undefined ? path : `${path}${rule.fieldPath}`;
  const shown = isObject(value) ? '"object"' : isArray(value) ? '"array"' : JSON.stringify(value);
  const failed = (why: string) => [problem(rule.reason, at, `Invalid value: ${shown}: ${why}`)];
  try {
    if (holds(variables) === true) return [];
    const text = message === undefined ? undefined : message(variables);
    return failed(typeof text === 'string' ? text : (rule.message ?? `failed rule: ${rule.rule}`));
  } catch (error) {
    // A rule that can't be evaluated does not hold: `no such key`.
    return failed(
      `${error instanceof Error ? error.message : String(error)} evaluating rule: ${rule.message ?? rule.rule}`,
    );
  }
}

/** Items of a list-map have an old value: the one with the same key. Those of other lists have none. */
function checkItems(
  schema: StructuralSchema,
  check: RuleCheck | undefined,
  value: Json,
  old: Json | undefined,
  path: string,
): readonly Cause[] {
  if (check === undefined || !isArray(value)) return [];
  const before = new Map(
    schema.listType === 'map' && isArray(old)
      ? old.map((item) => [JSON.stringify(mapKey(schema, item)), item] as const)
      : [],
  );
  return value.flatMap((item, i) =>
    check(item, before.get(JSON.stringify(mapKey(schema, item))), `${path}[${i}]`),
  );
}

function checkFields(
  checkOf: (field: string) => RuleCheck | undefined,
  value: Json,
  old: Json | undefined,
  path: string,
): readonly Cause[] {
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([field, inner]) => {
    const before = isObject(old) ? old[field] : undefined;
    return inner === undefined ? [] : (checkOf(field)?.(inner, before, child(path, field)) ?? []);
  });
}

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
function celOptional(value: Json | undefined): unknown {
  return value === undefined ? Optional.none() : Optional.of(celValue(value));
}
