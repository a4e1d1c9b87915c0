import type { Logger } from 'pino';
import { hasEnded } from '../../api/build-outcome.ts';
import type { MachineConfig } from '../../api/machine-config.ts';
import { type BuildFailureReason, type MachineOSBuild, MachineOSBuilds } from '../../api/machine-os-build.ts';
import type { MachineOSConfig } from '../../api/machine-os-config.ts';
import { type ApiClient, isNotFound, isTemporary } from '../../cluster/api-client.ts';
import type { EventRecorder } from '../../cluster/events.ts';
import { aboutChange, type Reporters } from '../../cluster/events.ts';
import type { FailingSteps } from '../../cluster/failing-steps.ts';
import type { Tracer } from '../../cluster/tracing/span.ts';
import { updateStatus } from '../../cluster/update-object.ts';
import { pauseByTimer } from '../../image/registry/registry-error.ts';
import { BuildFailure } from '../build-failure.ts';
import { decideRetry } from '../decide-retry.ts';
import type { BuildMetrics } from '../metrics.ts';
import { Slots } from '../slots.ts';
import { type BuildPhase, type BuildResult, buildStatus } from '../status.ts';
import { BuildTrace, type StepRunner } from './build-trace.ts';

/** One build to run. */
export interface BuildJob {
  readonly build: MachineOSBuild;
  readonly machineOSConfig: MachineOSConfig;
  readonly rendered: MachineConfig;
  /** By tag or digest, as requested. */
  readonly baseImage: string;
  /** GOARCH values; for more than one the image is an index. */
  readonly architectures: readonly string[];
  /** The build whose image is only labelled again, if a rollback requests that. */
  readonly sameAs?: MachineOSBuild | undefined;
}

export interface RunningBuildsOptions {
  readonly client: ApiClient;
  readonly events: EventRecorder;
  readonly log: Logger;
  readonly now: () => Date;
  /** Builds and pushes the image. @throws BuildFailure */
  readonly build: (job: BuildJob, step: StepRunner, signal: AbortSignal) => Promise<BuildResult>;
  /** How many builds run at once; appending a layer is cheap, so a pool seldom waits for another. */
  readonly parallel: number;
  readonly metrics?: BuildMetrics | undefined;
  readonly tracer: Tracer;
  /** What the builder can't do, by MachineOSConfig. */
  readonly failing: Pick<FailingSteps, 'failed' | 'over' | 'find'>;
  /**
   * Called when the status of a build can't be written: its MachineOSConfig has to be reconciled again. `at`: when, in
   * ms since the epoch.
   */
  readonly onUnwritten: (machineOSConfig: string, at: number) => void;
  /**
   * Waits for a number of ms between two attempts, and rejects when the signal is aborted. By a timer where it is not
   * given.
   */
  readonly pause?: (ms: number, signal: AbortSignal) => Promise<void>;
}

interface RunningBuild {
  readonly abort: AbortController;
  readonly done: Promise<void>;
  readonly job: BuildJob;
}

/** How a build ended. */
type BuildEnd = Extract<BuildPhase, { kind: 'succeeded' | 'failed' }>;

/** A build that is over, and whose status does not say so yet. */
interface UnwrittenEnd {
  readonly job: BuildJob;
  readonly end: BuildEnd;
}

/** The builds that this process runs. */
export class RunningBuilds {
  readonly #options: RunningBuildsOptions;
  readonly #running = new Map<string, RunningBuild>();
  readonly #unwritten = new Map<string, UnwrittenEnd>();
  readonly #slots: Slots;

  constructor(options: RunningBuildsOptions) {
    this.#options = options;
    this.#slots = new Slots(options.parallel);
  }

  start(job: BuildJob): void {
    const { name } = job.build.metadata;
    if (this.#running.has(name) || this.#unwritten.has(name)) return;
    const abort = new AbortController();
    this.#running.set(name, { abort, job, done: this.#run(job, abort.signal) });
  }

  /** Stops a build, if it is running, and waits until it has stopped. Its status is the caller's to write. */
  async abort(name: string): Promise<void> {
    const running = this.#running.get(name);
    running?.abort.abort(new Error('interrupted'));
    await running?.done;
    this.#unwritten.delete(name);
  }

  /** @returns the builds that are running, and those whose end is still to be written. */
  names(): ReadonlySet<string> {
    return new Set([...this.#running.keys(), ...this.#unwritten.keys()]);
  }

  /**
   * Writes the ends of a MachineOSConfig's builds that could not be written when they ended.
   *
   * @throws ApiError, ApiUnreachable where one still can't be written: it is kept for the next call.
   */
  async writeEnds(machineOSConfig: string): Promise<void> {
    for (const { job, end } of [...this.#unwritten.values()])
      if (job.machineOSConfig.metadata.name === machineOSConfig) await this.#writeEnd(job, end);
  }

  /** Stops every build and marks it as interrupted, so that the next builder starts it again. */
  async interruptAll(): Promise<void> {
    const all = await this.abandonAll();
    const message = 'The Machine OS Builder was stopped while it built the image';
    const ended = [...this.#unwritten.values()];
    await Promise.all([
      ...ended.map(({ job, end }) => this.#mark(job, end)),
      ...all
        .filter(({ build }) => !this.#unwritten.has(build.metadata.name))
        .map((job) => this.#mark(job, { kind: 'interrupted', message })),
    ]);
  }

  /**
   * Stops every build and writes nothing about it: another builder may run them already.
   *
   * @returns those that were running.
   */
  async abandonAll(): Promise<readonly BuildJob[]> {
    const all = [...this.#running.values()];
    for (const { abort } of all) abort.abort(new Error('the builder is stopping'));
    await Promise.all(all.map(({ done }) => done));
    return all.map(({ job }) => job);
  }

  /** The next builder starts every build that is not over: a mark that can't be written costs nothing but time. */
  async #mark(job: BuildJob, phase: BuildPhase): Promise<void> {
    try {
      await this.#report(job, phase);
    } catch (error) {
      const build = job.build.metadata.name;
      this.#reporters(job).log.warn(
        { build, err: error },
        'build could not be marked; the next builder starts it again',
      );
    }
  }

  async #run(job: BuildJob, signal: AbortSignal): Promise<void> {
    const { metrics, onUnwritten } = this.#options;
    const build = job.build.metadata.name;
    try {
      const end = await this.#attempts(job, signal);
      this.#unwritten.set(build, { job, end });
      await this.#writeEnd(job, end);
    } catch (error) {
      // The caller that aborts a build reports why.
      if (signal.aborted && !this.#unwritten.has(build)) metrics?.interrupted();
      else {
        this.#reporters(job).log.warn(
          { build, err: error },
          'status of the build could not be written; retrying',
        );
        const { retryAt } = this.#options.failing.find(...stepOf(job)) ?? { retryAt: 0 };
        onUnwritten(job.machineOSConfig.metadata.name, retryAt);
      }
    } finally {
      this.#running.delete(build);
    }
  }

  /** A build that was deleted meanwhile has no status any more. */
  async #writeEnd(job: BuildJob, end: BuildEnd): Promise<void> {
    const { name } = job.build.metadata;
    await this.#report(job, end).catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
    if (!this.#unwritten.delete(name)) return;
    if (end.kind === 'succeeded') this.#reportSuccess(job, end);
    else this.#reporters(job).events.warning(job.build, end.reason, end.message);
  }

  /** Between two attempts the slot is another build's: the delays may be minutes. */
  async #attempts(job: BuildJob, signal: AbortSignal): Promise<BuildEnd> {
    const { pause = pauseByTimer } = this.#options;
    const queued = performance.now();
    const failures = new FailuresInARow();
    for (let attempt = 1; ; attempt += 1) {
      const outcome = await this.#slots.run(signal, async () => {
        if (attempt === 1) {
          this.#options.metrics?.started(secondsSince(queued));
          await this.#report(job, { kind: 'started' });
        }
        return this.#attempt(job, attempt, failures, signal);
      });
      if (outcome.kind !== 'retry') return outcome;
      await pause(outcome.inMs, signal);
    }
  }

  /** @returns when to retry; how the build ended once it has succeeded or failed for good. */
  async #attempt(
    job: BuildJob,
    attempt: number,
    failures: FailuresInARow,
    signal: AbortSignal,
  ): Promise<{ readonly kind: 'retry'; readonly inMs: number } | BuildEnd> {
    const { metrics, tracer, build } = this.#options;
    const startedAt = performance.now();
    const trace = new BuildTrace(tracer, {
      pool: job.machineOSConfig.spec.machineConfigPool.name,
      config: job.rendered.metadata.name,
      build: job.build.metadata.name,
      attempt,
    });
    try {
      const result = await build(job, (name, work) => trace.step(name, work), signal);
      trace.succeeded(result);
      metrics?.succeeded(result.way, secondsSince(startedAt), result.bytes);
      return { kind: 'succeeded', ...result };
    } catch (error) {
      if (signal.aborted) throw error;
      const failure = BuildFailure.from(error);
      trace.failed(failure);
      const decision = decideRetry(failures.count(failure), failure);
      metrics?.failed(failure, secondsSince(startedAt), decision.kind);
      this.#reporters(job).log.warn(
        { build: job.build.metadata.name, attempt, err: failure.message, next: decision.kind },
        'build failed',
      );
      const { reason, message, logTail } = failure;
      if (decision.kind === 'giveUp') return { kind: 'failed', reason, message, logTail };
      const { left, inMs } = decision;
      const of = left === undefined ? undefined : attempt + left;
      await this.#reportProgress(job, {
        kind: 'retrying',
        attempt,
        reason,
        why: message,
        inMs,
        logTail,
        of,
      });
      return decision;
    }
  }

  /** An API server that is away does not have to be told before the next attempt. */
  async #reportProgress(job: BuildJob, phase: BuildPhase): Promise<void> {
    try {
      await this.#report(job, phase);
    } catch (error) {
      if (!isTemporary(error)) throw error;
      const build = job.build.metadata.name;
      this.#reporters(job).log.warn({ build, err: error }, 'progress of the build could not be written');
    }
  }

  async #report(job: BuildJob, phase: BuildPhase): Promise<void> {
    const { client, failing, now } = this.#options;
    const compute = (current: MachineOSBuild) =>
      hasEnded(current)
        ? current.status
        : buildStatus(current.status, phase, now().toISOString(), current.metadata.generation);
    try {
      await updateStatus(client, MachineOSBuilds, job.build, compute);
    } catch (error) {
      if (!isNotFound(error)) failing.failed(...stepOf(job), error);
      throw error;
    }
    failing.over(...stepOf(job));
  }

  #reportSuccess(job: BuildJob, { image, way, summary, warnings = [] }: BuildResult): void {
    const { build } = job;
    const { name } = build.metadata;
    const { log, events } = this.#reporters(job);
    events.normal(build, 'BuildSucceeded', `${image}: ${summary}`);
    for (const warning of warnings) {
      events.warning(build, 'ProvenanceNotAttached', warning);
      log.warn({ build: name, warning }, 'provenance not attached');
    }
    log.info({ build: name, image, way }, 'build succeeded');
  }

  #reporters({ rendered }: BuildJob): Reporters {
    return aboutChange(this.#options, rendered.metadata.name);
  }
}

/** A build whose status can't be written is found where its MachineOSConfig is. */
function stepOf({ build, machineOSConfig }: BuildJob): readonly [MachineOSConfig, string] {
  return [machineOSConfig, `writing the status of MachineOSBuild ${build.metadata.name}`];
}

/** A registry that was away for hours must not use up the attempts that are left for what follows. */
class FailuresInARow {
  #reason: BuildFailureReason | undefined;
  #count = 0;

  /** @returns how many failures in a row had the reason of this one, itself included. */
  count({ reason }: BuildFailure): number {
    this.#count = this.#reason === reason ? this.#count + 1 : 1;
    this.#reason = reason;
    return this.#count;
  }
}

function secondsSince(start: number): number {
  return (performance.now() - start) / 1_000;
}
