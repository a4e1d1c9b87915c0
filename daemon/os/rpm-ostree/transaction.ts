import { setTimeout as delay } from 'node:timers/promises';
import { OsCommandError, type OsCommandOptions, type RunOsCommand } from '../os-command.ts';

/**
 * A transaction of somebody else: an admin's, or rpm-ostreed-automatic's. An upgrade over a slow line takes this long.
 */
const BUSY_MS = 1_800_000;
/** Time for systemd to start the daemon again, with its first reading of the sysroot. */
const RESTART_MS = 120_000;
const RETRY_EVERY_MS = 2_000;

interface TransactionLimits {
  readonly busyMs: number;
  readonly restartMs: number;
  readonly retryEveryMs: number;
}

const LIMITS: TransactionLimits = { busyMs: BUSY_MS, restartMs: RESTART_MS, retryEveryMs: RETRY_EVERY_MS };

export type RpmOstreeCommand = readonly ['rpm-ostree', ...string[]];

/** What became of a command of rpm-ostree's client, as far as it matters for trying again. */
type TransactionFailure = 'busy' | 'daemonGone' | 'failed';

/**
 * rpm-ostree's client has one exit code for every failure, so failures are distinguished by its messages.
 *
 * @param stderr in the C locale.
 */
export function transactionFailure(stderr: string): TransactionFailure {
  // src/daemon/rpmostreed-sysroot.cxx, rpmostreed_sysroot_prep_for_txn
  if (/Transaction in progress: /.test(stderr)) return 'busy';
  // src/app/rpmostree-clientlib.cxx, and what GLib says of a name on the bus whose owner went or could not be started.
  // Before it connects, the client has systemd start the daemon (rust/src/client.rs, client_start_daemon).
  const gone =
    /Loading sysroot: exit status: |Bus owner changed, aborting|Message recipient disconnected|org\.freedesktop\.DBus\.Error\.(?:NoReply|ServiceUnknown|NameHasNoOwner|TimedOut)|Could not activate remote peer|Connection terminated|Error sending credentials/;
  return gone.test(stderr) ? 'daemonGone' : 'failed';
}

/** rpm-ostreed went away during a transaction that is not to be repeated: nobody knows whether it was done. */
export class TransactionLostError extends Error {
  override readonly name = 'TransactionLostError';
}

interface TransactionOptions extends OsCommandOptions {
  /** False for a command that undoes itself when it is run again: it may have done its work before the daemon went. */
  readonly isRepeatable?: boolean;
}

/**
 * Runs a command that begins a transaction of rpm-ostreed. While another one runs it waits; when the daemon was
 * restarted below it, it is run again. The transaction is the daemon's and continues when its client is killed, so one
 * that was cancelled or took too long is cancelled there as well.
 *
 * @throws OsCommandError, the last one when waiting was in vain; TransactionLostError; the signal's reason.
 */
export async function transaction(
  run: RunOsCommand,
  command: RpmOstreeCommand,
  { timeoutMs, signal, isRepeatable = true }: TransactionOptions,
  limits: TransactionLimits = LIMITS,
): Promise<void> {
  const work = () => run([...command], { timeoutMs, signal });
  await untilDaemonIsFree(run, work, { signal, isRepeatable }, limits).catch(async (error: unknown) => {
    const wasEnded = signal.aborted || (error instanceof OsCommandError && error.exitCode === undefined);
    if (wasEnded) await rpmOstreeCancel(run);
    throw error;
  });
}

/** Runs a command that only asks rpm-ostreed, as transaction does. @returns its output. @throws OsCommandError */
export function query(
  run: RunOsCommand,
  command: RpmOstreeCommand,
  options: OsCommandOptions,
  limits: TransactionLimits = LIMITS,
): Promise<string> {
  const { signal } = options;
  return untilDaemonIsFree(run, () => run([...command], options), { signal, isRepeatable: true }, limits);
}

async function untilDaemonIsFree<T>(
  run: RunOsCommand,
  work: () => Promise<T>,
  { signal, isRepeatable }: Repetition,
  { busyMs, restartMs, retryEveryMs }: TransactionLimits,
): Promise<T> {
  const began = performance.now();
  let goneSince: number | undefined;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const waitsFor = await whatToWaitFor(run, error, { signal, isRepeatable });
      const now = performance.now();
      goneSince = waitsFor === 'daemonGone' ? (goneSince ?? now) : undefined;
      const isOver = goneSince === undefined ? now - began > busyMs : now - goneSince > restartMs;
      if (isOver) throw error;
      await delay(retryEveryMs, undefined, { signal });
    }
  }
}

interface Repetition {
  readonly signal: AbortSignal;
  readonly isRepeatable: boolean;
}

/** @throws the error where its command is not to be run again; TransactionLostError. */
async function whatToWaitFor(
  run: RunOsCommand,
  error: unknown,
  { signal, isRepeatable }: Repetition,
): Promise<Exclude<TransactionFailure, 'failed'>> {
  if (!(error instanceof OsCommandError)) throw error;
  const failure = await failureOf(run, error, signal);
  if (failure === 'failed') throw error;
  if (failure === 'daemonGone' && !isRepeatable) {
    throw new TransactionLostError(error.message, { cause: error });
  }
  return failure;
}

/**
 * What the client reports, and where that is nothing of the daemon, whether it is gone: systemd ends the programs that
 * the daemon runs with it, and what is reported first may be about any of these (seen with 2026.2: `serialization
 * error: EOF` of skopeo, `Failed to commit tar: ExitStatus(unix_wait_status(15))`).
 */
async function failureOf(
  run: RunOsCommand,
  error: OsCommandError,
  signal: AbortSignal,
): Promise<TransactionFailure> {
  const reported = transactionFailure(error.stderr);
  if (reported !== 'failed' || error.exitCode === undefined) return reported;
  const show = ['systemctl', 'show', '--property=LoadState,ActiveState', 'rpm-ostreed.service'] as const;
  const state = await run([...show], { timeoutMs: TIMEOUT_MS, signal }).catch(() => '');
  const isEnded = /^LoadState=loaded$/m.test(state) && !/^ActiveState=(active|reloading)$/m.test(state);
  return isEnded ? 'daemonGone' : 'failed';
}

/** Enough for the daemon to leave a download; it is called on the way out. */
const TIMEOUT_MS = 20_000;

/**
 * `rpm-ostree cancel`: ends the transaction that runs, and is content when none does. Has a deadline of its own, since
 * it is for when the caller's signal is aborted already; that it didn't succeed is no news to one who has failed.
 */
async function rpmOstreeCancel(run: RunOsCommand): Promise<void> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  await run(['rpm-ostree', 'cancel'], { timeoutMs: TIMEOUT_MS, signal }).catch(() => undefined);
}
