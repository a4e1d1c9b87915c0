import type { Command } from 'commander';
import { canAsk, confirm } from './confirm.ts';
import { CommandError } from './exit-codes.ts';
import { note, print } from './output.ts';

/** Flags of commands that start a rollout of a whole pool. */
export interface AgreementFlags {
  readonly yes?: boolean;
  readonly dryRun?: boolean;
}

/** @returns the command with `--yes` and `--dry-run`. */
export function withAgreementFlags(command: Command): Command {
  return command
    .option('--yes', 'continue without asking; without a terminal nothing is asked')
    .option('--dry-run', 'print the plan and change nothing');
}

/** What a command is about to do. */
export interface Plan {
  /** For standard error. */
  readonly warnings: readonly string[];
  /** What will happen, for standard output. */
  readonly lines: readonly string[];
  /** Whether nodes are, or may be, drained or rebooted. */
  readonly disrupts: boolean;
}

/** `lookAgain`: the user agreed; the cluster may have changed while they read. */
export type Agreement = 'apply' | 'lookAgain' | 'dryRun';

/** Where plans are shown and questions are asked. */
interface Conversation {
  readonly canAsk: () => boolean;
  readonly ask: (question: string) => Promise<boolean | undefined>;
  readonly print: (line: string) => void;
  readonly warn: (line: string) => void;
}

/** @returns the conversation on this process's own streams. */
export function onTerminal(signal: AbortSignal): Conversation {
  return {
    canAsk,
    ask: (question) => confirm(question, signal),
    print,
    warn: (line) => note(`warning: ${line}`),
  };
}

/**
 * Shows a plan before it is carried out, and asks on a terminal if it disrupts nodes.
 *
 * @returns a function to call with the plan before each attempt to write: a plan that says the same as the one before
 *   is neither shown nor asked about again. It throws {CommandError} when the user doesn't agree.
 */
export function agreementBy(
  { yes = false, dryRun = false }: AgreementFlags,
  conversation: Conversation,
): (plan: Plan) => Promise<Agreement> {
  let shown: string | undefined;
  return async ({ warnings, lines, disrupts }) => {
    const text = JSON.stringify({ lines, disrupts });
    if (text === shown) return 'apply';
    if (shown !== undefined) conversation.warn('the cluster changed in the meantime; the plan is now:');
    shown = text;
    for (const warning of warnings) conversation.warn(warning);
    for (const line of lines) conversation.print(line);
    if (dryRun) return 'dryRun';
    if (yes || !disrupts || !conversation.canAsk()) return 'apply';
    if ((await conversation.ask('Continue?')) !== true) throw new CommandError('no changes were made');
    return 'lookAgain';
  };
}
