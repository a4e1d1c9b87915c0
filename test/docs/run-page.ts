import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { readRecord, sandboxLayout } from '../../workshop/sandbox/layout.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { agrees, type Step } from './console.ts';
import type { Page } from './pages.ts';
import { stepsOfPage } from './rules.ts';
import { openShell, type Shell, type Surroundings } from './shell.ts';

/** ms; a rollout that reboots every node takes 15 s on an idle machine. */
const STEP_LIMIT_MS = 360_000;
const DOWN_LIMIT_MS = 90_000;
const POLL_MS = 50;
/** What a failure shows of each log of the page's sandbox. */
const LOG_LINES = 12;

/**
 * Types a page's commands into a shell of its own, in order, and compares what they print with what the page shows.
 * What sandbox the page started is taken down, unless it is a shared one.
 *
 * @param shared what the page shares with others.
 * @throws Error that names the line, for a command that fails, or prints something else than is shown; with the ends of
 *   the sandbox's logs, which go with it.
 */
export async function runPage(page: Page, shared?: Surroundings): Promise<void> {
  const dir = await mkdtemp(path.join(tmpdir(), 'shale-docs-'));
  const shell = openShell(dir, shared);
  const { sandbox } = shared ?? shell.surroundings;
  const steps = stepsOfPage(page);
  try {
    for (const [index, step] of steps.entries()) await runStep(page, shell, step, steps[index + 1]);
  } catch (error) {
    if (error instanceof Error) error.message += `\n${await logTails(sandbox)}`;
    throw error;
  } finally {
    shell.close();
    if (shared === undefined) await takeDown(sandbox);
    await rm(dir, { recursive: true, force: true });
  }
}

/** A network for several pages, and a sandbox and the registry of the examples in it. */
export interface SharedSandbox {
  readonly surroundings: Surroundings;
  /** Takes both down. */
  close(): Promise<void>;
}

/** What a page's hidden commands start; the registry belongs to the shell that starts it. */
const START = [
  'shale sandbox up',
  'registry=$(node test/docs/example-registry.ts) && eval "$registry"',
] as const;

/** @returns once both are up. @throws Error with what was printed. */
export async function shareSandbox(): Promise<SharedSandbox> {
  const dir = await mkdtemp(path.join(tmpdir(), 'shale-docs-'));
  const shell = openShell(dir);
  const close = async () => {
    shell.close();
    await takeDown(shell.surroundings.sandbox);
    await rm(dir, { recursive: true, force: true });
  };
  for (const command of START) {
    const { output, exitCode } = await shell.run(command, patience(STEP_LIMIT_MS));
    if (exitCode === 0) continue;
    await close();
    throw new Error(`the shared sandbox does not start: ${command}\n${output}`);
  }
  return { surroundings: shell.surroundings, close };
}

async function runStep(page: Page, shell: Shell, step: Step, next: Step | undefined): Promise<void> {
  const where = `${page.file}:${step.line}: ${step.command}`;
  const { output, exitCode } = await shell.run(step.command, patience(STEP_LIMIT_MS));
  // A command may say no on purpose; then the page shows its exit code.
  const isExpected = exitCode === 0 || next?.command.startsWith('echo $?') === true;
  // Many readers of a log see its first line only: the command's last words are in it.
  if (!isExpected)
    throw new Error(`exit code ${exitCode}: ${output.trimEnd().split('\n').at(-1)}\n${where}\n${output}`);
  expectAsShown(step, where, output);
}

async function logTails(sandbox: string): Promise<string> {
  const { ownLog, logs } = sandboxLayout(sandbox);
  const names = await readdir(logs).catch(() => []);
  const files = [ownLog, ...names.sort().map((name) => path.join(logs, name))];
  const tails = files.map(async (file) => {
    const text = await readFile(file, 'utf8').catch(() => '');
    return `--- the end of ${path.basename(file)}\n${text.trimEnd().split('\n').slice(-LOG_LINES).join('\n')}`;
  });
  return (await Promise.all(tails)).join('\n');
}

/**
 * Not by the page's shell, which may be at a command that does not end, and whose network, where the sandbox is locked,
 * ends with it.
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
