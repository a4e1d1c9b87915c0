import path from 'node:path';
import { Command, Option } from 'commander';
import { errorMessage } from '../../api/error-message.ts';
import { CommandError, exitCodes } from '../../cli/command-line/exit-codes.ts';
import { createLogger } from '../../cluster/log.ts';
import { shutdownSignal } from '../../cluster/process.ts';
import type { ControlPlaneChoice } from './control-plane.ts';
import { readRecord, type SandboxRecord, sandboxLayout } from './layout.ts';
import { isLocked, SandboxInUse, untilUnlocked } from './lock.ts';
import { NODE_KINDS, type NodeKindName } from './node-kind.ts';
import { chooseNodes, NODE_CHOICES, type NodeChoice } from './requirements.ts';
import { KEEP, type ServeMessage, serve } from './serve.ts';
import { startSandbox } from './start.ts';
import { type TourFlags, tourCommand } from './tour/command.ts';

const DEFAULT_DIR = path.join(import.meta.dirname, '../../.shale/sandbox');
const DOWN_MS = 60_000;

interface Options {
  readonly dir: string;
  readonly kubeconfig?: string;
  readonly nodes: NodeChoice;
}

/** Of the process that is started once the nodes have been chosen. */
type ServeOptions = Options & { readonly nodes: NodeKindName; readonly startWith?: string };

/** @returns `shale sandbox`: a whole cluster on this machine. */
export function sandboxCommand(): Command {
  const command = new Command('sandbox').description(
    'Run a whole cluster on this machine, to try Shale out and to test it. It listens on loopback only.',
  );
  command.addCommand(withOptions(upCommand()));
  command.addCommand(withOptions(tourCommand<Options & TourFlags>(choiceOf)));
  command.addCommand(withDir(downCommand()));
  command.addCommand(withDir(statusCommand()));
  command.addCommand(withOptions(serveCommand(), NODE_KINDS), { hidden: true });
  return command;
}

function withDir(command: Command): Command {
  return command.addOption(
    new Option('--dir <directory>', 'directory of the sandbox')
      .default(DEFAULT_DIR, '.shale/sandbox in the checkout')
      .env('SHALE_SANDBOX_DIR'),
  );
}

function withOptions(command: Command, nodeChoices: readonly NodeChoice[] = NODE_CHOICES): Command {
  return withDir(command)
    .addOption(
      new Option(
        '--nodes <kind>',
        'kind of the nodes: directory (no process runs in it) or systemd (a container of systemd-nspawn, whose operating system is built once); auto: systemd where this machine supports it',
      )
        .choices(nodeChoices)
        .default('directory'),
    )
    .option(
      '--kubeconfig <file>',
      'use the cluster of this kubeconfig; default: kube-apiserver and etcd in the directory KUBEBUILDER_ASSETS, or the embedded API server if that is not set',
    );
}

function choiceOf({ kubeconfig }: Options): ControlPlaneChoice {
  return { assets: process.env['KUBEBUILDER_ASSETS'], kubeconfig };
}

function upCommand(): Command {
  return new Command('up')
    .description('Start a cluster and leave it running. One that runs in the directory already is kept.')
    .action(async (options: Options) => {
      const running = await runningSandbox(options.dir);
      const { kubeconfig } = running === undefined ? await bringUp(options) : asRequested(running, options);
      process.stdout.write(`export KUBECONFIG=${kubeconfig}\n`);
    });
}

async function bringUp(options: Options): Promise<SandboxRecord> {
  const signal = shutdownSignal();
  const onProgress = (what: string) => void process.stderr.write(`${what}\n`);
  const { kind, because } = await chooseNodes(options.nodes, onProgress, signal).catch(asCommandError);
  if (because !== undefined) onProgress(`The nodes are directories: ${because}`);
  const { dir } = options;
  const sandbox = await startSandbox({
    dir,
    choice: choiceOf(options),
    nodes: kind,
    onProgress,
    signal,
  }).catch(asCommandError);
  await sandbox.keep();
  return sandbox.record;
}

/** @returns the running sandbox. @throws CommandError if another one is requested, because a directory has one. */
function asRequested(running: SandboxRecord, { dir, nodes, kubeconfig }: Options): SandboxRecord {
  const isOther = kubeconfig !== undefined || (nodes !== 'auto' && nodes !== running.nodes);
  if (isOther)
    throw new CommandError(new SandboxInUse(sandboxLayout(dir).dir).message, exitCodes.unavailable);
  process.stderr.write('The sandbox is running already\n');
  return running;
}

/** @returns undefined if none runs, or the one that does is starting or stopping. */
async function runningSandbox(dir: string): Promise<SandboxRecord | undefined> {
  const layout = sandboxLayout(dir);
  return (await isLocked(layout.dir)) ? await readRecord(layout) : undefined;
}

function downCommand(): Command {
  return new Command('down')
    .description('Stop the cluster and delete everything that belongs to it.')
    .action(async ({ dir }: Options) => {
      const layout = sandboxLayout(dir);
      if (!(await isLocked(layout.dir))) {
        process.stdout.write('No sandbox is running.\n');
        return;
      }
      const record = await readRecord(layout);
      if (record === undefined)
        throw new CommandError(
          `the sandbox in ${layout.dir} is starting or stopping; try again in a few seconds`,
        );
      process.kill(record.pid, 'SIGTERM');
      await untilUnlocked(layout.dir, AbortSignal.timeout(DOWN_MS));
      process.stdout.write('The sandbox is stopped.\n');
    });
}

function statusCommand(): Command {
  return new Command('status')
    .description('Show whether a cluster is running, and where.')
    .action(async ({ dir }: Options) => {
      const record = await runningSandbox(dir);
      if (record === undefined) {
        process.stdout.write('No sandbox is running.\n');
        process.exitCode = exitCodes.failed;
        return;
      }
      const rows = [
        ['control plane', record.controlPlane],
        ['registry', record.registryHost],
        ['stock image', record.stockImage],
        ['nodes', record.nodes],
        ['logs', sandboxLayout(dir).logs],
        ['kubeconfig', record.kubeconfig],
      ];
      for (const [name = '', value = ''] of rows) process.stdout.write(`${name.padEnd(14)} ${value}\n`);
    });
}

/** The process that `up` and `tour` start. It goes down when they end, unless they ask it to stay. */
function serveCommand(): Command {
  const command = new Command('serve').description('Hold the cluster.');
  command.option('--start-with <directory>', 'another checkout of Shale, to install at first');
  return command.action(async (options: ServeOptions) => {
    const log = createLogger('sandbox', process.env['SHALE_LOG_LEVEL'] ?? 'debug');
    const abandoned = new AbortController();
    let kept = false;
    process.on('message', (message) => {
      kept = kept || message === KEEP;
    });
    process.on('disconnect', () => {
      if (!kept) abandoned.abort(new Error('the process that started the sandbox exited'));
    });
    const report = (message: ServeMessage) => {
      if (process.connected) process.send?.(message);
    };
    try {
      const signal = AbortSignal.any([shutdownSignal(), abandoned.signal]);
      const { dir, nodes, startWith } = options;
      await serve({ dir, choice: choiceOf(options), nodes, startWith, report, log, signal });
    } catch (error) {
      log.error({ err: error }, 'the sandbox failed');
      report({ type: 'failed', message: errorMessage(error) });
      process.exitCode = exitCodes.failed;
    } finally {
      if (process.connected) process.disconnect();
    }
  });
}

function asCommandError(error: unknown): never {
  const message = errorMessage(error);
  throw new CommandError(message, exitCodes.unavailable, { cause: error });
}
