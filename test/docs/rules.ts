import { type Step, stepsOf } from './console.ts';
import type { Block, Page } from './pages.ts';

/**
 * What the words after a fence mean:
 *
 * - `console` and `sh`: commands, which a test runs. `dry-run` after it: kubectl asks the API server to change nothing
 *   (`--dry-run=server`). `elsewhere`: they need what a test has not; they are held against what the program takes, and
 *   elsewhere.ts says why.
 * - `yaml`: objects for Kubernetes, which an API server is asked to take. `file` after it: the content of some other
 *   file.
 * - any other language: the content of a file.
 * - `as=NAME` after any of these: the page has it saved as that file.
 *
 * A comment `<!-- before: COMMANDS -->` has what is to be done at that place, out of a reader's sight.
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

/** @returns what is done with a page, in order: its commands, what is saved for them, and what is out of sight. */
export function stepsOfPage(page: Page): Step[] {
  const steps = [...hiddenSteps(page), ...page.blocks.flatMap(stepsOfBlock)];
  return steps.toSorted((a, b) => a.line - b.line);
}

function stepsOfBlock(block: Block): Step[] {
  const name = block.words.find((word) => word.startsWith('as='))?.slice('as='.length);
  if (name !== undefined) {
    const command = `cat > ${name} <<'END OF ${name}'\n${block.text}END OF ${name}`;
    return [{ command, output: [], line: block.line }];
  }
  if (!isRun(block)) return [];
  return block.words.includes('dry-run') ? stepsOf(block).map(dryRun) : stepsOf(block);
}

function dryRun(step: Step): Step {
  const kubectl = 'kubectl() { command kubectl "$@" --dry-run=server; }';
  return { ...step, command: `${kubectl}; ${step.command}\nunset -f kubectl` };
}

function hiddenSteps({ text }: Page): Step[] {
  return [...text.matchAll(/<!-- before:\n([\s\S]*?)\n *-->/g)].flatMap(({ 1: commands = '', index }) => {
    const line = text.slice(0, index).split('\n').length;
    return stepsOf({ language: 'sh', words: [], text: `${commands}\n`, line });
  });
}
