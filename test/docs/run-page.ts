import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { readRecord, sandboxLayout } from '../../workshop/sandbox/layout.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { agrees, type Step } from './console.ts';
import type { Page } from './pages.ts';
import { stepsOfPage } from './rules.ts';
import { openShell, sandboxOf } from './shell.ts';

/** ms; a rollout that reboots every node takes 15 s on an idle machine. */
const STEP_LIMIT_MS = 360_000;
const DOWN_LIMIT_MS = 90_000;
const POLL_MS = 50;

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
      const { output, exitCode } = await shell.run(step.command, patience(STEP_LIMIT_MS));
      const where = `${page.file}:${step.line}: ${step.command}`;
      // A command may say no on purpose; then the page shows its exit code.
      const shown = steps[index + 1]?.command.startsWith('echo $?') === true;
      if (exitCode !== 0 && !shown) throw new Error(`${where}: exit code ${exitCode}\n${output}`);
      expectAsShown(step, where, output);
    }
  } finally {
    shell.close();
    await takeDown(sandboxOf(dir));
    await rm(dir, { recursive: true, force: true });
  }
}

/**
 * Not by the page's shell, which may be at a command that does not end, and whose network, where the sandbox is locked, ends
 * with it.
 */
async function takeDown(sandbox: string): Promise<void> {
  const record = await readRecord(sandboxLayout(sandbox));
  if (record === undefined) return;
  const end = deadline(DOWN_LIMIT_MS);
  for (let asked = false; isRunning(record.pid, asked ? 0 : 'SIGTERM'); asked = true) {
    await delay(POLL_MS, undefined, { signal: end });
  }
}

function isRunning(pid: number, signal: 0 | 'SIGTERM'): boolean {
  try {
    return process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
    throw error;
  }
}

function expectAsShown({ output }: Step, where: string, printed: string): void {
  if (output.length === 0 || agrees(output, printed)) return;
  throw new Error(`${where}\n--- shown\n${output.join('\n')}\n--- printed\n${printed}`);
}
