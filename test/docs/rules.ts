import type { Step } from './console.ts';
import type { Block, Page } from './pages.ts';

/**
 * What the words after a fence mean:
 *
 * - `console` and `sh`: commands, which a test runs. `elsewhere` after it: they need a cluster, a host or a registry that
 *   a test has not; they are parsed, and counted in elsewhere.ts.
 * - `yaml`: objects for Kubernetes. `file` after it: the content of some other file.
 * - any other language: the content of a file.
 *
 * A comment `<!-- before: COMMANDS -->` has what is to be done before a page's first command, out of a reader's sight.
 */
export function isCommands({ language }: Block): boolean {
  return language === 'console' || language === 'sh';
}

export function isRun(block: Block): boolean {
  return isCommands(block) && !isElsewhere(block);
}

export function isElsewhere({ words }: Block): boolean {
  return words.includes('elsewhere');
}

/** @returns what is to be done before a page's first command. */
export function preparationOf({ text }: Page): Step[] {
  return [...text.matchAll(/<!-- before:\n([\s\S]*?)\n-->/g)].flatMap(({ 1: commands = '', index }) => {
    const line = text.slice(0, index).split('\n').length;
    return commands.split('\n').map((command, at) => ({ command, output: [], line: line + 1 + at }));
  });
}
