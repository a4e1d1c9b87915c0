import { Command, Option } from 'commander';
import { errorMessage } from '../../../api/error-message.ts';
import { CommandError, exitCodes } from '../../../cli/command-line/exit-codes.ts';
import { createLogger } from '../../../cluster/log.ts';
import { shutdownSignal } from '../../../cluster/process.ts';
import type { ControlPlaneChoice } from '../control-plane.ts';
import { type ChosenNodes, chooseNodes, type NodeChoice } from '../requirements.ts';
import { formatReport, isSuccess } from './report.ts';
import { runTour, TOUR, type TourListener } from './run-tour.ts';

export interface TourFlags {
  readonly dir: string;
  readonly nodes: NodeChoice;
  readonly keep?: boolean;
  readonly output: 'table' | 'json';
}

function formatNodes({ kind, because }: ChosenNodes): string {
  switch (kind) {
    case 'directory':
      return `Nodes: directories with a real ostree sysroot, in which no process runs${because === undefined ? '' : ` (${because})`}`;
    case 'systemd':
      return 'Nodes: systemd machines with a real ostree sysroot, each in a container of systemd-nspawn';
  }
}

/** @param choiceOf which API server the flags and the environment ask for. */
export function tourCommand<T extends TourFlags>(choiceOf: (flags: T) => ControlPlaneChoice): Command {
  return new Command('tour')
    .description(
      'Start a cluster and demonstrate what Shale does, step by step. The exit code is 0 if every step passes.',
    )
    .option('--keep', 'leave the cluster running at the end')
    .addOption(
      new Option('-o, --output <format>', 'output format').choices(['table', 'json']).default('table'),
    )
    .action((flags: T) => take(flags, choiceOf(flags)));
}

async function take({ dir, nodes, keep, output }: TourFlags, choice: ControlPlaneChoice): Promise<void> {
  const signal = shutdownSignal();
  const print = (what: string) => void process.stderr.write(`${what}\n`);
  const chosen = await chooseNodes(nodes, print, signal).catch(interrupted);
  print(formatNodes(chosen));
  const listener = tourProgress(process.stderr, TOUR.length);
  const { report, sandbox } = await runTour({
    dir,
    choice,
    nodes: chosen.kind,
    listener,
    log: createLogger('tour', 'error'),
    signal,
  }).catch((error: unknown) => {
    if (signal.aborted) interrupted();
    const message = errorMessage(error);
    throw new CommandError(message, exitCodes.unavailable, { cause: error });
  });
  process.stdout.write(
    output === 'json' ? `${JSON.stringify(report, undefined, 2)}\n` : `\n${formatReport(report)}`,
  );
  if (keep === true) {
    await sandbox.keep();
    process.stderr.write('\nThe cluster is running. To stop it: bin/shale sandbox down\n');
    process.stdout.write(`export KUBECONFIG=${sandbox.record.kubeconfig}\n`);
  } else await sandbox.stop();
  if (!isSuccess(report)) process.exitCode = exitCodes.failed;
}

function interrupted(): never {
  throw new CommandError('interrupted; the sandbox is stopped', exitCodes.interrupted);
}

/** Where progress is written: standard error, or a test's own. */
export interface ProgressOutput {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

const BAR = 20;
const DEFAULT_COLUMNS = 100;
/** Back to the line's beginning, and everything on it away (ECMA-48: EL). */
const CLEAR_LINE = '\r\u001b[2K';

/**
 * Shows the progress of the tour: on a terminal as one line that changes, with a bar; anywhere else as a line for each
 * thing that happened.
 *
 * @param total how many steps there are.
 */
export function tourProgress(output: ProgressOutput, total: number): TourListener {
  return output.isTTY === true ? terminalProgress(output, total) : plainProgress(output, total);
}

function plainProgress(output: ProgressOutput, total: number): TourListener {
  return {
    onStep: (number, title) => void output.write(`[${number}/${total}] ${title}\n`),
    onProgress: (seen) => void output.write(`      ${seen}\n`),
    onCheck: (what) => void output.write(`      ok: ${what}\n`),
    onStepEnd: ({ number, seconds, failure, skipped }) =>
      void output.write(
        skipped === undefined
          ? `[${number}/${total}] ${failure === undefined ? 'done' : 'FAILED'} in ${seconds.toFixed(1)} s\n`
          : `[${number}/${total}] skipped: ${skipped}\n`,
      ),
  };
}

function terminalProgress(output: ProgressOutput, total: number): TourListener {
  const show = (seen: string, part: number | undefined) => {
    const line = `      ${bar(part)} ${seen}`;
    output.write(`${CLEAR_LINE}${line.slice(0, (output.columns ?? DEFAULT_COLUMNS) - 1)}`);
  };
  return {
    onStep: (number, title) => void output.write(`[${number}/${total}] ${title}\n`),
    onProgress: show,
    onCheck: (what) => void output.write(`${CLEAR_LINE}      ✓ ${what}\n`),
    onStepEnd: ({ seconds, failure, skipped }) =>
      void output.write(
        skipped === undefined
          ? `${CLEAR_LINE}      ${failure === undefined ? '✓ done' : '✗ failed'} in ${seconds.toFixed(1)} s\n`
          : `${CLEAR_LINE}      - skipped: ${skipped}\n`,
      ),
  };
}

/** What isn't known in parts has an empty bar. */
function bar(part = 0): string {
  const done = Math.round(Math.min(1, Math.max(0, part)) * BAR);
  return `${'█'.repeat(done)}${'░'.repeat(BAR - done)}`;
}
