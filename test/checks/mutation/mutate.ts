import { parseSync } from 'vite';
import { by } from '../../../api/order.ts';

/** One small change of a module's text that a good test notices. */
export interface Mutant {
  /** Line of the change, from 1. */
  readonly line: number;
  /** What was there, and what is there instead, each cut to one line. */
  readonly change: string;
  /** The module's text with the change. */
  readonly source: string;
}

interface Replacement {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** An ESTree node with what this file asks of it; the parser's own types are a union of 150. */
interface SyntaxNode {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [field: string]: unknown;
}

/** The comparison that differs only at its bound, then the one that says the opposite. */
const BINARY: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    '<': ['<=', '>='],
    '<=': ['<', '>'],
    '>': ['>=', '<='],
    '>=': ['>', '<'],
    '===': ['!=='],
    '!==': ['==='],
    '+': ['-'],
    '-': ['+'],
    '*': ['/'],
    '/': ['*'],
    '%': ['*'],
  }),
);

const LOGICAL: ReadonlyMap<string, string> = new Map(Object.entries({ '&&': '||', '||': '&&', '??': '&&' }));

/** Methods of arrays and strings whose counterpart, or whose absence, a test has to notice. */
const COUNTERPARTS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    every: 'some',
    some: 'every',
    startsWith: 'endsWith',
    endsWith: 'startsWith',
    min: 'max',
    max: 'min',
    union: 'intersection',
  }),
);
const LEFT_OUT: ReadonlySet<string> = new Set([
  'filter',
  'sort',
  'toSorted',
  'reverse',
  'slice',
  'trim',
  'concat',
]);

/** Calls that change nothing a test should pin: log lines, by the names of loggers and of their levels. */
const LOGGERS: ReadonlySet<string> = new Set(['log', 'logger', '#log']);
const LEVELS: ReadonlySet<string> = new Set(['debug', 'info', 'warn', 'error', 'trace', 'fatal']);

/** What may do something beside computing a value. */
const EFFECTS: ReadonlySet<string> = new Set([
  'AwaitExpression',
  'YieldExpression',
  'AssignmentExpression',
  'UpdateExpression',
]);
const CALLS: ReadonlySet<string> = new Set(['CallExpression', 'NewExpression', 'TaggedTemplateExpression']);

/**
 * Lists the mutants of a module: conditions taken for true and for false, comparisons at and across their bound, `&&`
 * for `||`, `every` for `some`, a filter or an order left out, a statement or a throw left out, a number one larger, a
 * result left out. What only a condition decides on is left out once, by the condition that is false. Log lines are
 * left alone: their text, whether they are written, and a condition that decides that alone.
 *
 * @param file the module's name, for its language.
 * @param source its text.
 * @returns the mutants in the order of the text; the same for the same text.
 * @throws {Error} when the text can't be parsed.
 */
export function mutantsOf(file: string, source: string): Mutant[] {
  const { program, errors } = parseSync(file, source);
  if (errors.length > 0) throw new Error(`${file} can't be parsed: ${errors[0]?.message}`);
  const replacements: Replacement[] = [];
  const guarded = new Set<SyntaxNode>();
  walk(program as unknown as SyntaxNode, (node) => {
    const statement = guardedStatement(node);
    if (statement !== undefined) guarded.add(statement);
    if (!guarded.has(node)) replacements.push(...replacementsOf(node, source));
  });
  return replacements
    .sort(
      by(
        ({ start }) => start,
        ({ end }) => end,
        ({ text }) => text,
      ),
    )
    .map((replacement) => mutant(source, replacement));
}

function mutant(source: string, { start, end, text }: Replacement): Mutant {
  const before = source.slice(start, end);
  return {
    line: source.slice(0, start).split('\n').length,
    change: `${oneLine(before)} -> ${oneLine(text) || '(nothing)'}`,
    source: `${source.slice(0, start)}${text}${source.slice(end)}`,
  };
}

function oneLine(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim();
  return line.length > 70 ? `${line.slice(0, 69)}…` : line;
}

/** Types and imports are no behaviour. */
function isTypeOnly(node: SyntaxNode): boolean {
  return (
    node.type.startsWith('TS') &&
    !['TSAsExpression', 'TSNonNullExpression', 'TSSatisfiesExpression'].includes(node.type)
  );
}

function walk(node: SyntaxNode, visit: (node: SyntaxNode) => void): void {
  if (isTypeOnly(node) || node.type === 'ImportDeclaration' || isLogging(node)) return;
  visit(node);
  for (const child of childrenOf(node)) walk(child, visit);
}

function childrenOf(node: SyntaxNode): readonly SyntaxNode[] {
  return Object.values(node).flatMap((value) => (Array.isArray(value) ? value : [value]).filter(isNode));
}

/** @returns whether all that a node does is to write log lines, or to decide whether it does. */
function isLogging(node: SyntaxNode): boolean {
  switch (node.type) {
    case 'CallExpression':
      return isLogCall(node['callee']) && !has(node, EFFECTS);
    case 'ExpressionStatement':
      return isNode(node['expression']) && isLogging(node['expression']);
    case 'BlockStatement':
      return childrenOf(node).length > 0 && childrenOf(node).every(isLogging);
    case 'IfStatement': {
      const { test, consequent, alternate } = node;
      const branches = [consequent, alternate].filter(isNode);
      return isNode(test) && !has(test, EFFECTS) && !has(test, CALLS) && branches.every(isLogging);
    }
    default:
      return false;
  }
}

/** `log.info`, `context.log.warn`, `this.#log.error`. */
function isLogCall(callee: unknown): boolean {
  if (!isNode(callee) || callee.type !== 'MemberExpression' || !isNode(callee['object'])) return false;
  const { object } = callee;
  return (
    LEVELS.has(nameOf(callee['property'])) &&
    LOGGERS.has(nameOf(object.type === 'MemberExpression' ? object['property'] : object))
  );
}

function nameOf(node: unknown): string {
  if (!isNode(node)) return '';
  return node.type === 'PrivateIdentifier' ? `#${String(node['name'])}` : String(node['name'] ?? '');
}

function has(node: SyntaxNode, types: ReadonlySet<string>): boolean {
  return types.has(node.type) || childrenOf(node).some((child) => has(child, types));
}

function isNode(value: unknown): value is SyntaxNode {
  return (
    typeof value === 'object' && value !== null && typeof (value as { type?: unknown }).type === 'string'
  );
}

/**
 * @returns the one throw or call that a condition decides on: left out, it is the mutant whose condition is false.
 *   Undefined where the condition does something itself, which is left undone then.
 */
function guardedStatement(node: SyntaxNode): SyntaxNode | undefined {
  const { type, test, consequent, alternate } = node;
  if (type !== 'IfStatement' || isNode(alternate) || !isNode(test) || !isNode(consequent)) return undefined;
  if (has(test, EFFECTS)) return undefined;
  const statements = consequent.type === 'BlockStatement' ? childrenOf(consequent) : [consequent];
  const [only] = statements;
  if (only === undefined || statements.length > 1) return undefined;
  return only.type === 'ThrowStatement' || only.type === 'ExpressionStatement' ? only : undefined;
}

function replacementsOf(node: SyntaxNode, source: string): Replacement[] {
  switch (node.type) {
    case 'IfStatement':
    case 'ConditionalExpression':
      return isNode(node['test'])
        ? ['true', 'false'].map((text) => replace(node['test'] as SyntaxNode, text))
        : [];
    case 'BinaryExpression':
      return operators(node, source, BINARY.get(String(node['operator'])) ?? []);
    case 'LogicalExpression':
      return operators(node, source, [LOGICAL.get(String(node['operator'])) ?? ''].filter(Boolean));
    case 'UnaryExpression':
      return node['operator'] === '!' && isNode(node['argument'])
        ? [replace(node, source.slice(node['argument'].start, node['argument'].end))]
        : [];
    case 'CallExpression':
      return callReplacements(node, source);
    case 'ExpressionStatement':
      return statementReplacements(node, source);
    case 'ThrowStatement':
      return [replace(node, '{}')];
    case 'Literal':
      return typeof node['value'] === 'number' ? [replace(node, String(node['value'] + 1))] : [];
    default:
      return [];
  }
}

function replace({ start, end }: SyntaxNode, text: string): Replacement {
  return { start, end, text };
}

function operators(node: SyntaxNode, source: string, others: readonly string[]): Replacement[] {
  const { left, right } = node;
  if (!isNode(left) || !isNode(right)) return [];
  const operator = String(node['operator']);
  const start = source.indexOf(operator, left.end);
  if (start < 0 || start >= right.start) return [];
  return others.map((text) => ({ start, end: start + operator.length, text }));
}

function callReplacements(node: SyntaxNode, source: string): Replacement[] {
  const { callee } = node;
  if (!isNode(callee) || callee.type !== 'MemberExpression') return [];
  const { object, property } = callee;
  if (!isNode(object) || !isNode(property)) return [];
  const name = source.slice(property.start, property.end);
  const counterpart = COUNTERPARTS.get(name);
  if (counterpart !== undefined) return [replace(property, counterpart)];
  return LEFT_OUT.has(name) ? [{ start: object.end, end: node.end, text: '' }] : [];
}

function statementReplacements(node: SyntaxNode, source: string): Replacement[] {
  const { expression } = node;
  if (!isNode(expression) || expression.type === 'Literal') return [];
  const text = source.slice(node.start, node.end);
  if (text.startsWith('super(')) return [];
  return [replace(node, ';')];
}
