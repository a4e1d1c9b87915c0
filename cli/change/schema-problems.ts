import type { z } from 'zod';
import { quote } from '../../machineconfig/problem.ts';

/**
 * @param error of a schema; undefined if the value is valid.
 * @param value that was parsed, an object's spec.
 * @returns one line for each problem: the field, what it is, and what is expected.
 */
export function schemaProblems(error: z.ZodError | undefined, value: unknown): string[] {
  return (error?.issues ?? []).map((issue) => {
    const field = issue.path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`));
    return `spec${field.join('')}: ${whatIs(valueAt(value, issue.path))}; expected ${expectedBy(issue.message)}`;
  });
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (at, step) => (typeof at === 'object' && at !== null ? Reflect.get(at, step) : undefined),
    value,
  );
}

function whatIs(value: unknown): string {
  if (value === undefined) return 'is missing';
  if (typeof value === 'string') return `is ${quote(value)}`;
  if (Array.isArray(value)) return `is a list of ${value.length}`;
  return typeof value === 'object' ? 'is an object' : `is ${String(value)}`;
}

/** Zod's messages begin with what is wrong, in words of its own; those of Shale's schemas say what is expected. */
function expectedBy(message: string): string {
  const [, type] = /^Invalid (?:input|option|value): expected (.*?)(?:, received .*)?$/.exec(message) ?? [];
  const [, pattern] = /^Invalid string: must match pattern (.*)$/.exec(message) ?? [];
  const [, size] = /^Too (?:big|small): expected \w+ to (.*)$/.exec(message) ?? [];
  if (type !== undefined) return type;
  if (pattern !== undefined) return `a match of ${pattern}`;
  return size === undefined ? message : `it to ${size}`;
}
