import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { agrees, type Step } from './console.ts';
import type { Page } from './pages.ts';
import { stepsOfPage } from './rules.ts';
import { openShell } from './shell.ts';

/** ms; a rollout that reboots every node takes 15 s on an idle machine. */
const STEP_LIMIT_MS = 360_000;
const DOWN_LIMIT_MS = 90_000;

/**
 * Types a page's commands into a shell of its own, in order, and compares what they print with what the page shows. What
 * sandbox the page started is taken down.
 *
 * @throws Error that names the line, for a command that fails, or prints something else than is shown.
 */
export async function runPage(page: Page): Promise<void> {
  const dir = await mkdtemp(path.join(tmpdir(), 'shale-docs-'));
  const shell = openShell(dir);
  try {
    const steps = stepsOfPage(page);
    for (const [index, step] of steps.entries()) {
      const { output, exitCode } = await shell.run(step.command, STEP_LIMIT_MS);
      const where = `${page.file}:${step.line}: ${step.command}`;
      // A command may say no on purpose; then the page shows its exit code.
      const shown = steps[index + 1]?.command.startsWith('echo $?') === true;
      if (exitCode !== 0 && !shown) throw new Error(`${where}: exit code ${exitCode}\n${output}`);
      expectAsShown(step, where, output);
    }
  } finally {
    await shell.run('shale sandbox down', DOWN_LIMIT_MS).finally(() => shell.close());
    await rm(dir, { recursive: true, force: true });
  }
}

function expectAsShown({ output }: Step, where: string, printed: string): void {
  if (output.length === 0 || agrees(output, printed)) return;
  throw new Error(`${where}\n--- shown\n${output.join('\n')}\n--- printed\n${printed}`);
}
