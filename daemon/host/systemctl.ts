import { setTimeout as delay } from 'node:timers/promises';
import { OsCommandError, type RunOsCommand } from '../os/os-command.ts';
import type { ServiceManager, ServiceState } from './host.ts';

/** systemctl itself returns quickly with --no-block; listing a large host's units doesn't. */
const COMMAND_TIMEOUT_MS = 60_000;
/** systemd-tmpfiles waits for disks. */
const POLL_MS = 200;
/**
 * A unit is taken for running when it was active that often in a row: one that crashes at once is active in between.
 */
const SETTLE_POLLS = 5;
/**
 * Lines of the unit's journal in the message of a failure, and characters: with what goes before them they fit an
 * event.
 */
const JOURNAL_LINES = 20;
const JOURNAL_CHARACTERS = 800;

/** The properties of a unit, from `systemctl show`, that matter here. */
export interface UnitProperties {
  readonly loadState: string;
  readonly activeState: ServiceState;
  /** Times that systemd started it again by itself. */
  readonly restarts: number;
  /** A oneshot is done, and inactive, once its command has ended. */
  readonly type: string;
  readonly result: string;
}

/** Result of a unit that was started too often in too short a time. */
const START_LIMIT = 'start-limit-hit';

const PROPERTIES = ['LoadState', 'ActiveState', 'NRestarts', 'Type', 'Result'];

/** @returns the properties of `systemctl show --property=…`: a line `Name=value` for each. */
export function parseUnitProperties(output: string): UnitProperties {
  const values = new Map<string, string>();
  for (const line of output.split('\n')) {
    const end = line.indexOf('=');
    if (end > 0) values.set(line.slice(0, end), line.slice(end + 1));
  }
  return {
    loadState: values.get('LoadState') ?? 'not-found',
    activeState: parseState(values.get('ActiveState')),
    restarts: Number(values.get('NRestarts') ?? 0),
    type: values.get('Type') ?? '',
    result: values.get('Result') ?? '',
  };
}

/** What a unit's properties say of a job that was to make it active. */
type UnitProgress = 'pending' | 'done' | { readonly failed: string };

/**
 * @param before the unit before the job. @param now the unit now.
 * @returns whether the unit has become active; a oneshot that ended well has done what it is for.
 */
export function unitProgress(before: UnitProperties, now: UnitProperties): UnitProgress {
  if (now.restarts > before.restarts) return { failed: `crashed and was started again (${now.result})` };
  switch (now.activeState) {
    case 'active':
      return 'done';
    case 'failed':
      return { failed: `unit entered failed state (${now.result})` };
    case 'inactive':
      return now.type === 'oneshot' && now.result === 'success'
        ? 'done'
        : { failed: `ended (${now.result})` };
    case 'activating':
    case 'deactivating':
    case 'reloading':
    case 'unknown':
      return 'pending';
  }
}

/** The caller's signal is the limit of a job; this one only ends a systemctl that hangs. */
const NO_LIMIT_MS = 3_600_000;

/** @returns after that many ms. @throws the signal's reason, or an AbortError. */
type Wait = (ms: number, signal: AbortSignal) => Promise<void>;

/**
 * systemd through systemctl(1). A job is awaited by systemctl, and after it the unit has to stay active: systemctl
 * returns as soon as a simple service was forked.
 */
export class Systemctl implements ServiceManager {
  readonly #run: RunOsCommand;
  readonly #wait: Wait;

  /**
   * @param run runs commands in the host's namespaces.
   * @param wait what passes the time between two looks at a unit.
   */
  constructor(run: RunOsCommand, wait: Wait = (ms, signal) => delay(ms, undefined, { signal })) {
    this.#run = run;
    this.#wait = wait;
  }

  async daemonReload(signal: AbortSignal): Promise<void> {
    await this.#run(['systemctl', 'daemon-reload'], { timeoutMs: COMMAND_TIMEOUT_MS, signal });
  }

  reload(unit: string, signal: AbortSignal): Promise<void> {
    return this.#job('reload', unit, signal);
  }

  restart(unit: string, signal: AbortSignal): Promise<void> {
    return this.#job('restart', unit, signal);
  }

  start(unit: string, signal: AbortSignal): Promise<void> {
    return this.#job('start', unit, signal);
  }

  async stop(unit: string, signal: AbortSignal): Promise<void> {
    assertUnitName('stop', unit);
    await this.#run(['systemctl', 'stop', '--', unit], { timeoutMs: NO_LIMIT_MS, signal });
  }

  async state(unit: string, signal: AbortSignal): Promise<ServiceState> {
    assertUnitName('state', unit);
    return (await this.#show(unit, signal)).activeState;
  }

  async isLoaded(unit: string, signal: AbortSignal): Promise<boolean> {
    assertUnitName('show', unit);
    return (await this.#show(unit, signal)).loadState === 'loaded';
  }

  async lastLines(unit: string, signal: AbortSignal): Promise<string> {
    const command = [
      'journalctl',
      '--no-pager',
      '--output=cat',
      `--lines=${JOURNAL_LINES}`,
      `--unit=${unit}`,
    ] as const;
    // The journal only explains; without it the reason still stands.
    const lines = await this.#run(command, { timeoutMs: COMMAND_TIMEOUT_MS, signal }).catch(() => '');
    return lines.length <= JOURNAL_CHARACTERS ? lines : lines.slice(-JOURNAL_CHARACTERS).replace(/^.*\n/, '');
  }

  async #job(action: 'reload' | 'restart' | 'start', unit: string, signal: AbortSignal): Promise<void> {
    assertUnitName(action, unit);
    const before = await this.#show(unit, signal);
    if (before.loadState !== 'loaded') throw new ServiceError(action, unit, `unit is ${before.loadState}`);
    try {
      // `restart` and `start` set NRestarts back to 0, so what counts is from here on.
      await this.#runJob(action, unit, signal);
    } catch (cause) {
      if (!(cause instanceof OsCommandError)) throw cause;
      throw await this.#failure(action, unit, cause.stderr.trim() || cause.message, signal, cause);
    }
    const started = action === 'reload' ? before : { ...before, restarts: 0 };
    const progress = await this.#settle(unit, started, signal);
    if (progress !== 'done') throw await this.#failure(action, unit, progress.failed, signal);
  }

  /**
   * systemd refuses to start a unit that has crashed repeatedly (systemd.unit(5), StartLimitIntervalSec=). The update
   * may have fixed the cause, so the count is reset, once.
   */
  async #runJob(action: 'reload' | 'restart' | 'start', unit: string, signal: AbortSignal): Promise<void> {
    const job = ['systemctl', action, '--', unit] as const;
    try {
      await this.#run(job, { timeoutMs: NO_LIMIT_MS, signal });
    } catch (error) {
      if (!(error instanceof OsCommandError) || (await this.#show(unit, signal)).result !== START_LIMIT)
        throw error;
      await this.#run(['systemctl', 'reset-failed', '--', unit], { timeoutMs: COMMAND_TIMEOUT_MS, signal });
      await this.#run(job, { timeoutMs: NO_LIMIT_MS, signal });
    }
  }

  async #settle(
    unit: string,
    before: UnitProperties,
    signal: AbortSignal,
  ): Promise<Exclude<UnitProgress, 'pending'>> {
    for (let steady = 0; steady < SETTLE_POLLS; ) {
      await this.#wait(POLL_MS, signal);
      const progress = unitProgress(before, await this.#show(unit, signal));
      if (typeof progress === 'object') return progress;
      steady = progress === 'done' ? steady + 1 : 0;
    }
    return 'done';
  }

  async #show(unit: string, signal: AbortSignal): Promise<UnitProperties> {
    const command = ['systemctl', 'show', `--property=${PROPERTIES.join(',')}`, '--', unit] as const;
    return parseUnitProperties(await this.#run(command, { timeoutMs: COMMAND_TIMEOUT_MS, signal }));
  }

  async #failure(
    action: string,
    unit: string,
    reason: string,
    signal: AbortSignal,
    cause?: unknown,
  ): Promise<ServiceError> {
    const journal = await this.lastLines(unit, signal);
    return new ServiceError(action, unit, [reason, journal].filter((text) => text !== '').join('\n'), {
      cause,
    });
  }
}

function parseState(text: string | undefined): ServiceState {
  switch (text) {
    case 'active':
    case 'inactive':
    case 'failed':
    case 'activating':
    case 'deactivating':
    case 'reloading':
      return text;
    default:
      return 'unknown';
  }
}

/** A unit couldn't be brought to the state that was asked for. */
export class ServiceError extends Error {
  override readonly name = 'ServiceError';
  readonly unit: string;
  readonly action: string;

  /** @param reason what was wrong, without unit and action. */
  constructor(action: string, unit: string, reason: string, options?: ErrorOptions) {
    super(`${action} ${unit}: ${reason}`, options);
    this.unit = unit;
    this.action = action;
  }
}

/**
 * A unit name with its type (systemd.unit(5)): at most 255 characters of letters, digits, `:-_.\` and `@`. It can't
 * begin with `-`, so it is never taken for an option.
 */
const UNIT_NAME =
  /^[A-Za-z0-9:_.\\@][A-Za-z0-9:_.\\@-]*\.(service|socket|target|timer|path|mount|automount|swap|slice|scope|device)$/;
const MAX_UNIT_NAME = 255;

/** @throws ServiceError when the text can't be a unit's name: it may come from an image's label. */
export function assertUnitName(action: string, unit: string): void {
  if (unit.length <= MAX_UNIT_NAME && UNIT_NAME.test(unit)) return;
  throw new ServiceError(
    action,
    JSON.stringify(unit.slice(0, MAX_UNIT_NAME)),
    'not the name of a systemd unit',
  );
}
