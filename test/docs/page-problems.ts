import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { parse as parseToml } from 'smol-toml';
import { parseAllDocuments } from 'yaml';
import { errorMessage } from '../../api/error-message.ts';
import { formatObjectProblem, offlineCluster } from '../../predict/objects/offline-cluster.ts';
import { problemsOf as problemsOfCluster } from '../../predict/objects/offline-problems.ts';
import { stepsOf } from './console.ts';
import { problemsOfCommand } from './known-commands.ts';
import { objectsIn, problemsOfObject } from './known-objects.ts';
import { anchorsOf, type Block, linksOf, type Page, proseOf, ROOT, readPage } from './pages.ts';
import { isCommands, isElsewhere } from './rules.ts';
import { simpleCommands } from './shell-words.ts';

/** What is wrong with a page, without running anything of it. */

/** Languages that a block may be of; what is no command, YAML, JSON or TOML is shown and not looked at. */
const LANGUAGES = [
  'console',
  'sh',
  'yaml',
  'json',
  'toml',
  'dockerfile',
  'ini',
  'promql',
  'text',
  'mermaid',
  'ts',
];

/** @returns blocks that don't say what they are. */
export function unmarkedBlocks(page: Page): string[] {
  const unknown = page.blocks.filter(({ language }) => !LANGUAGES.includes(language));
  return [
    ...unknown.map(({ line, language }) => `line ${line}: language "${language}"`),
    ...indentedCode(page),
  ];
}

/** @returns its commands that no test runs: the first line of each, without a comment. */
export function commandsElsewhere({ blocks }: Page): string[] {
  const steps = blocks.filter((block) => isCommands(block) && isElsewhere(block)).flatMap(stepsOf);
  return steps.map(({ command }) => (command.split('\n')[0] ?? '').replace(/\s+#.*$/, ''));
}

/**
 * What a page's test does before the page's own commands is in a comment that no reader sees.
 *
 * @returns what its text lacks: what its commands need, and what the test starts for them.
 */
export function unsaidSetUp(page: Page): string[] {
  const isSaid = /the\s+test\s+of\s+this\s+page/i.test(proseOf(page));
  return /^ *<!-- before:$/m.test(page.text) && !isSaid
    ? ['it has hidden commands, and no sentence with "the test of this page" about them']
    : [];
}

/** @returns links and anchors that lead nowhere in the project. */
export function brokenLinks(page: Page): string[] {
  return linksOf(page).flatMap((target) => problemsOfLink(page, target));
}

/** @returns what the objects and files in its blocks have wrong. */
export function problemsOfContents(page: Page): string[] {
  return page.blocks.flatMap(problemsOfBlock);
}

/** @returns commands, in blocks and in running text, that are not as the programs take them. */
export function problemsOfCommands(page: Page): string[] {
  const problems: string[] = [];
  for (const { command, line } of page.blocks.filter(isCommands).flatMap(stepsOf)) {
    execFileSync('bash', ['-n'], { input: command });
    for (const words of simpleCommands(command)) {
      for (const problem of problemsOfCommand(words)) problems.push(`line ${line}: ${problem}`);
    }
  }
  for (const text of inlineCommands(page)) {
    for (const problem of problemsOfCommand(simpleCommands(text)[0] ?? [], { isWhole: false })) {
      problems.push(`\`${text}\`: ${problem}`);
    }
  }
  return problems;
}

/** @returns commands of shale in running text, each with the first of its alternatives: `up|down`, `[POOL\|NODE]`. */
function inlineCommands(page: Page): string[] {
  const spans = [...proseOf(page).matchAll(/`((?:bin\/|kubectl )?shale [^`]+)`/g)].map(
    ([, text = '']) => text,
  );
  return spans
    .map((text) =>
      text
        .replaceAll('\\|', '|')
        .replaceAll(/\|[^\s\]]+/g, '')
        .replaceAll(/[[\]…]/g, ''),
    )
    .filter((text) => !/COMMAND|<|\.\.\./.test(text));
}

function problemsOfBlock({ language, words, text, line }: Block): string[] {
  try {
    switch (language) {
      case 'json':
        JSON.parse(text);
        return [];
      case 'toml':
        parseToml(text);
        return [];
      case 'yaml':
        return (words.includes('file') ? filesProblems(text) : objectsProblems(text)).map(
          (problem) => `line ${line}: ${problem}`,
        );
      default:
        return [];
    }
  } catch (error) {
    return [`line ${line}: ${errorMessage(error)}`];
  }
}

function filesProblems(yaml: string): string[] {
  return parseAllDocuments(yaml).flatMap(({ errors }) => errors.map(({ message }) => message));
}

/** By the schema, and then as `shale validate` does. */
function objectsProblems(yaml: string): string[] {
  const objects = objectsIn(yaml);
  const bySchema = objects.flatMap(problemsOfObject);
  if (bySchema.length > 0) return bySchema;
  // A kustomization has no metadata, and is none of a cluster's objects.
  return problemsOfCluster(offlineCluster(objects.filter(({ kind }) => kind !== 'Kustomization'))).map(
    formatObjectProblem,
  );
}

/** Code without a fence is neither run nor looked at. */
function indentedCode(page: Page): string[] {
  const lines = proseOf(page).split('\n');
  let inList = false;
  return lines.flatMap((line, index) => {
    if (/^\s*([-*]|\d+\.) /.test(line)) inList = true;
    else if (/^\S/.test(line)) inList = false;
    const begins = /^ {4}/.test(line) && lines[index - 1]?.trim() === '';
    return begins && !inList ? [`line ${index + 1}: ${line.trim()}`] : [];
  });
}

function problemsOfLink({ file }: Page, target: string): string[] {
  if (/^[a-z]+:/.test(target)) return [];
  const [name = '', anchor] = target.split('#');
  const linked = name === '' ? file : path.posix.join(path.posix.dirname(file), name);
  if (!existsSync(path.join(ROOT, linked))) return [`${target}: ${linked} is not there`];
  if (anchor === undefined) return [];
  return anchorsOf(readPage(linked)).has(anchor) ? [] : [`${target}: ${linked} has no heading of that name`];
}
