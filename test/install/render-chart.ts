import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { parse, parseAllDocuments, stringify } from 'yaml';
import type { KubernetesObject } from '../../api/object.ts';
import { by } from '../../api/order.ts';

/**
 * Renders Shale's chart as Helm does, as far as its templates go: values, `if`, `not`, `range` over a list, `quote`,
 * `toJson`, `toYaml` with `nindent`, and the trimming of white space. What it doesn't know it refuses, so that the
 * templates stay as plain as they are.
 */
export interface Release {
  readonly namespace: string;
  /** Over those of values.yaml. */
  readonly values?: Readonly<Record<string, unknown>>;
}

interface Scope {
  readonly root: unknown;
  readonly dot: unknown;
}

type Token = { readonly text: string } | { readonly action: string };

/** @returns the objects of the chart's templates; its custom resource definitions are no templates. */
export async function renderChart(
  chart: string,
  { namespace, values = {} }: Release,
): Promise<KubernetesObject[]> {
  const defaults = parse(await readFile(path.join(chart, 'values.yaml'), 'utf8')) as Record<string, unknown>;
  const root = {
    Release: { Namespace: namespace },
    Chart: { AppVersion: '' },
    Values: merged(defaults, values),
  };
  const templates = path.join(chart, 'templates');
  const objects: KubernetesObject[] = [];
  for (const name of (await readdir(templates)).sort()) {
    const text = renderTemplate(await readFile(path.join(templates, name), 'utf8'), { root, dot: root });
    if (!name.endsWith('.yaml')) continue;
    for (const document of parseAllDocuments(text)) {
      const [error] = document.errors;
      if (error !== undefined) throw new Error(`${name}: ${error.message}`, { cause: error });
      const object = document.toJS() as KubernetesObject | null;
      if (object !== null) objects.push(object);
    }
  }
  return objects;
}

/** Maps are merged, everything else replaces (Helm, "Values Files"). */
function merged(defaults: unknown, given: unknown): unknown {
  if (!isMap(defaults) || !isMap(given)) return given;
  const keys = [...new Set([...Object.keys(defaults), ...Object.keys(given)])];
  return Object.fromEntries(
    keys.map((key) => [key, key in given ? merged(defaults[key], given[key]) : defaults[key]]),
  );
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Go, text/template, "Actions": false, 0, nothing, and whatever is empty. */
function isTrue(value: unknown): boolean {
  return typeof value === 'object' && value !== null ? Object.keys(value).length > 0 : Boolean(value);
}

/** Go, encoding/json: maps sorted by key. */
function toJson(value: unknown): string {
  return JSON.stringify(value, (_, item: unknown) =>
    isMap(item) ? Object.fromEntries(Object.entries(item).sort(by(([key]) => key))) : item,
  );
}

/** @returns the text that a template makes. @throws Error for an action that isn't known here. */
export function renderTemplate(template: string, scope: Scope): string {
  const tokens = tokensOf(template);
  const { text, rest } = renderUntilEnd(tokens, scope);
  if (rest.length > 0) throw new Error('{{ end }} without a beginning');
  return text;
}

/** `{{-` takes the white space before it away, `-}}` that after it (Go, text/template, "Text and spaces"). */
function tokensOf(template: string): Token[] {
  const tokens: Token[] = [];
  let last = 0;
  let trim = false;
  const push = (text: string, trimEnd: boolean) => {
    const start = trim ? text.trimStart() : text;
    tokens.push({ text: trimEnd ? start.trimEnd() : start });
  };
  for (const match of template.matchAll(/\{\{(-\s)?\s*(.*?)\s*(\s-)?\}\}/gs)) {
    push(template.slice(last, match.index), match[1] !== undefined);
    tokens.push({ action: match[2] ?? '' });
    trim = match[3] !== undefined;
    last = match.index + match[0].length;
  }
  push(template.slice(last), false);
  return tokens;
}

function renderUntilEnd(tokens: readonly Token[], scope: Scope): { text: string; rest: readonly Token[] } {
  let text = '';
  let rest = tokens;
  for (;;) {
    const [token, ...after] = rest;
    if (token === undefined) return { text, rest: [] };
    rest = after;
    if ('text' in token) {
      text += token.text;
      continue;
    }
    const [, word, argument = ''] = /^(if|range|end)\b\s*(.*)$/.exec(token.action) ?? [];
    if (word === 'end') return { text, rest: [token, ...after] };
    if (word === undefined) {
      text += String(evaluate(token.action, scope));
      continue;
    }
    const value = evaluate(argument, scope);
    const dots = word === 'range' ? (value as readonly unknown[]) : isTrue(value) ? [scope.dot] : [];
    for (const dot of dots) text += renderUntilEnd(after, { ...scope, dot }).text;
    rest = renderUntilEnd(after, scope).rest.slice(1);
  }
}

function evaluate(expression: string, scope: Scope): unknown {
  const quoted = /^(.+) \| quote$/.exec(expression)?.[1];
  if (quoted !== undefined) return JSON.stringify(evaluate(quoted, scope));
  const negated = /^not (.+)$/.exec(expression)?.[1];
  if (negated !== undefined) return !isTrue(evaluate(negated, scope));
  const json = /^toJson (.+)$/.exec(expression)?.[1];
  if (json !== undefined) return toJson(evaluate(json, scope));
  const [, shown, indent] = /^toYaml (.+) \| nindent (\d+)$/.exec(expression) ?? [];
  if (shown !== undefined) {
    const lines = stringify(evaluate(shown, scope), { lineWidth: 0 }).trimEnd().split('\n');
    return lines.map((line) => `\n${' '.repeat(Number(indent))}${line}`).join('');
  }
  const greater = /^gt \(int (.+)\) (\d+)$/.exec(expression);
  if (greater !== null) return Number(evaluate(greater[1] ?? '', scope)) > Number(greater[2]);
  const literal = /^"([^"\\]*)"$/.exec(expression)?.[1];
  if (literal !== undefined) return literal;
  if (expression === '.') return scope.dot;
  if (!/^(\.[A-Za-z]+)+$/.test(expression)) throw new Error(`{{ ${expression} }} is not known here`);
  const fields = expression.slice(1).split('.');
  const value = fields.reduce<unknown>(
    (at, field) => (at as Record<string, unknown> | undefined)?.[field],
    scope.root,
  );
  if (value === undefined) throw new Error(`{{ ${expression} }}: there is no such value`);
  return value;
}
