/**
 * Finds regular expressions of the product whose time grows faster than their input. Whoever writes a MachineConfig, a
 * status or a registry's response chooses that input, and JavaScript matches by backtracking: a pattern of quadratic
 * time takes a second for 100 kB and days for 16 MB.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { analyse } from 'scslre';
import { parseSync } from 'vite';
import { isTestFile, readImportGraph } from './import-graph.ts';

const ROOMS = [
  ...[
    'oci',
    'api',
    'machineconfig',
    'disruption',
    'predict',
    'image',
    'x509',
    'cluster',
    'builder',
    'opt-in',
    'rollout',
  ],
  ...['view', 'operator', 'daemon', 'page', 'capi', 'cli'],
];

/** Patterns that are made of parts at run time, and why their input or their parts are no danger. */
const MADE_AT_RUN_TIME: Readonly<Record<string, string>> = {
  'builder/engine/secret-forms.ts':
    "the characters of a secret; a build's line has 64 KiB at most (build-log.ts)",
  'daemon/os/soft-reboot/userspace-boot.ts': "names of the file's own, for what systemctl prints",
};

interface Pattern {
  readonly file: string;
  readonly line: number;
  readonly source: string;
  readonly flags: string;
}

interface Patterns {
  readonly known: readonly Pattern[];
  /** The files of patterns whose text isn't known before they run. */
  readonly unknown: readonly string[];
}

/** A node of ESTree, as far as it is looked at here. */
type Tree = { readonly [field: string]: unknown; readonly type?: string };

/** @returns the regular expressions of a file. @param file its name, for the result. */
export function patternsOf(file: string, text: string): Patterns {
  const { program } = parseSync(file, text);
  const constants = constantsOf(program as unknown as Tree);
  const known: Pattern[] = [];
  const unknown: string[] = [];
  walk(program as unknown as Tree, (node) => {
    const at = { file, line: text.slice(0, node['start'] as number).split('\n').length };
    const { regex, callee } = node as {
      regex?: { pattern: string; flags: string };
      callee?: { name?: string };
    };
    if (regex !== undefined) known.push({ ...at, source: regex.pattern, flags: regex.flags });
    if (callee?.name !== 'RegExp') return;
    const [source, flags] = node['arguments'] as readonly (Tree | undefined)[];
    const [pattern, options] = [
      textOf(source, constants),
      flags === undefined ? '' : textOf(flags, constants),
    ];
    if (pattern === undefined || options === undefined) unknown.push(file);
    else known.push({ ...at, source: pattern, flags: options });
  });
  return { known, unknown };
}

/** @returns why a pattern isn't linear; undefined when it is. */
export function whyNotLinear({ source, flags }: Pick<Pattern, 'source' | 'flags'>): string | undefined {
  const [report] = analyse({ source, flags }).reports;
  if (report === undefined) return undefined;
  return `takes ${report.exponential ? 'exponential' : 'quadratic'} time for many ${JSON.stringify(report.character.pick)}`;
}

function walk(value: unknown, visit: (node: Tree) => void): void {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value) && 'type' in value) visit(value as Tree);
  for (const child of Object.values(value)) walk(child, visit);
}

/** The texts of a file's own constants, which patterns are made of. */
function constantsOf(program: Tree): ReadonlyMap<string, string> {
  const constants = new Map<string, string>();
  walk(program, (node) => {
    if (node.type !== 'VariableDeclarator') return;
    const name = (node['id'] as Tree)['name'];
    const text = textOf(node['init'] as Tree | undefined, constants);
    if (typeof name === 'string' && text !== undefined) constants.set(name, text);
  });
  return constants;
}

/** @returns the text that an expression stands for; undefined when it isn't known before it runs. */
function textOf(node: Tree | undefined | null, constants: ReadonlyMap<string, string>): string | undefined {
  switch (node?.type) {
    case 'Literal':
      return ['string', 'number'].includes(typeof node['value']) ? String(node['value']) : undefined;
    case 'Identifier':
      return constants.get(node['name'] as string);
    case 'TemplateLiteral':
      return joined(node, 'cooked', constants);
    case 'TaggedTemplateExpression':
      return joined(node['quasi'] as Tree, 'raw', constants);
    case 'BinaryExpression': {
      const [left, right] = [node['left'], node['right']].map((side) => textOf(side as Tree, constants));
      return left === undefined || right === undefined ? undefined : left + right;
    }
    case 'MemberExpression': {
      const text = (node['property'] as Tree)['name'] === 'source' ? node['object'] : undefined;
      const regex = (text as { regex?: { pattern: string } } | undefined)?.regex;
      return regex?.pattern;
    }
    default:
      return undefined;
  }
}

function joined(
  template: Tree,
  form: 'cooked' | 'raw',
  constants: ReadonlyMap<string, string>,
): string | undefined {
  const quasis = template['quasis'] as readonly { readonly value: Readonly<Record<string, string>> }[];
  const parts = (template['expressions'] as readonly Tree[]).map((part) => textOf(part, constants));
  if (parts.some((part) => part === undefined)) return undefined;
  return quasis.map(({ value }, index) => `${value[form] ?? ''}${parts[index] ?? ''}`).join('');
}

/** @returns each pattern of the product that isn't linear, or whose text isn't known and which isn't listed above. */
export function nonLinearPatterns(root: string): readonly string[] {
  const files = [...readImportGraph(root, ROOMS).keys()].filter((file) => !isTestFile(file));
  const all = files.map((file) => patternsOf(file, readFileSync(path.join(root, file), 'utf8')));
  const unknown = new Set(all.flatMap((patterns) => patterns.unknown));
  return [
    ...all
      .flatMap(({ known }) => known)
      .flatMap((pattern) => {
        const why = whyNotLinear(pattern);
        return why === undefined
          ? []
          : [`${pattern.file}:${pattern.line}: /${pattern.source}/${pattern.flags} ${why}`];
      }),
    ...[...unknown]
      .filter((file) => !(file in MADE_AT_RUN_TIME))
      .map(
        (file) => `${file}: has a pattern that is made at run time; list it with the reason why it is linear`,
      ),
    ...Object.keys(MADE_AT_RUN_TIME)
      .filter((file) => !unknown.has(file))
      .map((file) => `${file}: has no pattern that is made at run time`),
  ];
}
