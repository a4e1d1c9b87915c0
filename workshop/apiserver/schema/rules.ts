import { isArray, isObject, type Json } from '../json.ts';
import type { Cause } from '../status.ts';
import { celOptional, celValue, compileExpression, type Program } from './cel/expressions.ts';
import { isUnchanged, oldField, oldItem } from './ratcheting.ts';
import type { StructuralSchema, ValidationRule } from './structural-schema.ts';
import { child, problem } from './validate.ts';

interface CompiledRule {
  readonly rule: ValidationRule;
  /** Of the value that the rule is about. */
  readonly schema: StructuralSchema;
  readonly holds: Program;
  readonly message?: Program;
  /** A rule that knows the old value: it counts for what is unchanged, too. */
  readonly aboutChange: boolean;
  /** Whether the rule or its message names the old value. */
  readonly readsOld: boolean;
  /** One that is not asked without an old value. */
  readonly transition: boolean;
}

/** @returns problems of a value, and of everything in it, by x-kubernetes-validations. */
export type RuleCheck = (
  value: Json,
  old: Json | undefined,
  path: string,
  /** Whether an update left the value as it was, or all of what it is in: then only rules about the change count. */
  unchanged?: boolean,
) => readonly Cause[];

/**
 * Compiles the rules of a schema (Kubernetes, "Validation rules").
 *
 * @returns undefined where there are none at any depth.
 * @throws Error that shows the rule, for one that can't be parsed.
 */
export function compileRules(schema: StructuralSchema): RuleCheck | undefined {
  const own = schema.rules.map((rule) => compileRule(rule, schema));
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
  return (value, old, path, within = false) => {
    const unchanged = within || isUnchanged(schema, value, old);
    const self = own.length === 0 ? undefined : celValue(value, schema);
    return [
      ...own.flatMap((rule) => checkRule(rule, { value, self, old }, path, unchanged)),
      ...checkItems(schema, items, value, old, path, unchanged),
      ...checkFields((field) => properties.get(field) ?? additional, value, old, path, unchanged),
    ];
  };
}

const OLD_SELF = /\boldSelf\b/;

function compileRule(rule: ValidationRule, schema: StructuralSchema): CompiledRule {
  const compile = (expression: string): Program => {
    try {
      return compileExpression(expression, ['self', 'oldSelf'], rule.optionalOldSelf ? ['oldSelf'] : []);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      throw new Error(`the rule ${JSON.stringify(expression)} can't be compiled: ${why}`, { cause: error });
    }
  };
  const aboutChange = OLD_SELF.test(rule.rule);
  return {
    rule,
    schema,
    holds: compile(rule.rule),
    ...(rule.messageExpression === undefined ? {} : { message: compile(rule.messageExpression) }),
    aboutChange,
    readsOld: aboutChange || OLD_SELF.test(rule.messageExpression ?? ''),
    transition: aboutChange && !rule.optionalOldSelf,
  };
}

/** What all rules of one place in a schema are asked about. */
interface Checked {
  readonly value: Json;
  /** The value as CEL sees it. */
  readonly self: unknown;
  readonly old: Json | undefined;
}

function checkRule(
  { rule, schema, holds, message, transition, aboutChange, readsOld }: CompiledRule,
  { value, self, old }: Checked,
  path: string,
  unchanged: boolean,
): readonly Cause[] {
  if (transition && old === undefined) return [];
  const known = readsOld ? old : undefined;
  const oldSelf = rule.optionalOldSelf ? celOptional(known, schema) : celValue(known, schema);
  const variables = { self, oldSelf };
  const at = rule.fieldPath === undefined ? path : `${path}${rule.fieldPath}`;
  const shown = isObject(value) ? '"object"' : isArray(value) ? '"array"' : JSON.stringify(value);
  const failed = (why: string) => [problem(rule.reason, at, `Invalid value: ${shown}: ${why}`)];
  try {
    if (holds(variables) === true || (unchanged && !aboutChange)) return [];
    const text = message === undefined ? undefined : message(variables);
    return failed(typeof text === 'string' ? text : (rule.message ?? `failed rule: ${rule.rule}`));
  } catch (error) {
    // A rule that can't be evaluated does not hold: `no such key`.
    return failed(
      `${error instanceof Error ? error.message : String(error)} evaluating rule: ${rule.message ?? rule.rule}`,
    );
  }
}

function checkItems(
  schema: StructuralSchema,
  check: RuleCheck | undefined,
  value: Json,
  old: Json | undefined,
  path: string,
  unchanged: boolean,
): readonly Cause[] {
  if (check === undefined || !isArray(value)) return [];
  return value.flatMap((item, i) => check(item, oldItem(schema, item, old), `${path}[${i}]`, unchanged));
}

function checkFields(
  checkOf: (field: string) => RuleCheck | undefined,
  value: Json,
  old: Json | undefined,
  path: string,
  unchanged: boolean,
): readonly Cause[] {
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([field, inner]) =>
    inner === undefined
      ? []
      : (checkOf(field)?.(inner, oldField(field, old), child(path, field), unchanged) ?? []),
  );
}
