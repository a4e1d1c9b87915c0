import { Command, Option } from 'commander';
import { CommandError, exitCodes } from '../../../cli/command-line/exit-codes.ts';
import { createLogger, shutdownSignal } from '../../../cluster/process.ts';
import { type ChosenNodes, chooseNodes, type NodeChoice } from '../choose-nodes.ts';
import type { ControlPlaneChoice } from '../control-plane.ts';
import { tourProgress } from './progress.ts';
import { formatReport, isSuccess } from './report.ts';
import { runTour, TOUR } from './run-tour.ts';

export interface TourFlags {
  readonly dir: string;
  readonly nodes: NodeChoice;
  readonly keep?: boolean;
  readonly output: 'table' | 'json';
}

function nodesInWords({ kind, because }: ChosenNodes): string {
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
  print(nodesInWords(chosen));
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
    const message = error instanceof Error ? error.message : String(error);
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
