import type { Block } from './pages.ts';

/** One command of a block, with what it is said to print. */
export interface Step {
  /** As a shell takes it: with continued lines and here-documents. */
  readonly command: string;
  /** Lines; empty where the page shows none. `…` stands for any text, and alone on a line for any lines. */
  readonly output: readonly string[];
  /** In the page. */
  readonly line: number;
}

const HERE_DOCUMENT = /<<-?\s*(['"]?)(\w+)\1/;

/**
 * @param block `console`: commands after `$ `, each with its output; `sh`: commands alone.
 * @returns its commands in order.
 */
export function stepsOf({ language, text, line }: Block): Step[] {
  const lines = text.replace(/\n$/, '').split('\n');
  const steps: Step[] = [];
  for (let at = 0; at < lines.length; ) {
    const start = at;
    const first = lines[at] ?? '';
    at += 1;
    const isCommand = language === 'sh' || first.startsWith('$ ');
    if (!isCommand) {
      const last = steps.pop();
      if (last === undefined) throw new Error(`line ${line + at}: expected a command after $`);
      steps.push({ ...last, output: [...last.output, first] });
      continue;
    }
    const command = [language === 'sh' ? first : first.slice(2)];
    while (command.at(-1)?.endsWith('\\') === true && at < lines.length) command.push(lines[at++] ?? '');
    const end = HERE_DOCUMENT.exec(command.join('\n'))?.[2];
    while (end !== undefined && command.at(-1)?.trim() !== end && at < lines.length)
      command.push(lines[at++] ?? '');
    const script = command.join('\n');
    if (!/^\s*(#|$)/.test(script)) steps.push({ command: script, output: [], line: line + start + 1 });
  }
  // An empty line between an output and the next command is there for the eye.
  return steps.map((step) => ({
    ...step,
    output: step.output
      .join('\n')
      .trimEnd()
      .split('\n')
      .filter((_, i, all) => all.length > 1 || all[i] !== ''),
  }));
}

/**
 * @param shown lines of a page, with `…` for what differs each time.
 * @param real what the command printed.
 * @returns whether they agree; how wide a table's columns are does not count.
 */
export function agrees(shown: readonly string[], real: string): boolean {
  const lines = shown.map((line) => (line.trim() === '…' ? '(?:[^\\n]*\\n)*?' : `${lineRule(line)}\\n`));
  const given = real.split('\n').map(narrow).join('\n').trimEnd();
  return new RegExp(`^${lines.join('')}$`).test(given === '' ? '' : `${given}\n`);
}

function lineRule(line: string): string {
  return narrow(line)
    .split('…')
    .map((part) => part.replaceAll(/[.*+?^${}()|[\]\\/]/g, '\\$&'))
    .join('[^\\n]*?');
}

function narrow(line: string): string {
  return line.trimEnd().replaceAll(/[ \t]+/g, ' ');
}
