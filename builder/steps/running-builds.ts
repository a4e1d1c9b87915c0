import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { MachineConfig } from '../../api/machine-config.ts';
import { type MachineOSBuild, MachineOSBuilds } from '../../api/machine-os-build.ts';
import type { MachineOSConfig } from '../../api/machine-os-config.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import type { EventRecorder } from '../../cluster/events.ts';
import { aboutChange, type Reporters } from '../../cluster/events.ts';
import type { Tracer } from '../../cluster/tracing/span.ts';
import { updateStatus } from '../../cluster/update-object.ts';
import { BuildFailure } from '../build-failure.ts';
import { decideRetry } from '../decide-retry.ts';
import type { BuildMetrics } from '../metrics.ts';
import { Slots } from '../slots.ts';
import { type BuildPhase, type BuildResult, buildStatus, isOver } from '../status.ts';
import { BuildTrace, type Step } from './build-trace.ts';

/** One build to run. */
export interface BuildJob {
  readonly build: MachineOSBuild;
  readonly machineOSConfig: MachineOSConfig;
  readonly rendered: MachineConfig;
  /** By tag or digest, as requested. */
  readonly baseImage: string;
  /** GOARCH values; for more than one the image is an index. */
  readonly architectures: readonly string[];
}

export interface RunningBuildsOptions {
  readonly client: ApiClient;
  readonly events: EventRecorder;
  readonly log: Logger;
  readonly now: () => Date;
  /** Builds and pushes the image. @throws BuildFailure */
  readonly build: (job: BuildJob, step: Step, signal: AbortSignal) => Promise<BuildResult>;
  /** How many builds run at once; appending a layer is cheap, so a pool seldom waits for another. */
  readonly parallel: number;
  readonly metrics?: BuildMetrics;
  readonly tracer: Tracer;
}

interface RunningBuild {
  readonly abort: AbortController;
  readonly done: Promise<void>;
  readonly job: BuildJob;
}

/** The builds that this process runs. */
export class RunningBuilds {
  readonly #options: RunningBuildsOptions;
  readonly #running = new Map<string, RunningBuild>();
  readonly #slots: Slots;

  constructor(options: RunningBuildsOptions) {
    this.#options = options;
    this.#slots = new Slots(options.parallel);
  }

  start(job: BuildJob): void {
    const { name } = job.build.metadata;
    if (this.#running.has(name)) return;
    const abort = new AbortController();
    this.#running.set(name, { abort, job, done: this.#run(job, abort.signal) });
  }

  /** Stops a build, if it is running, and waits until it has stopped. */
  async abort(name: string): Promise<void> {
    const running = this.#running.get(name);
    running?.abort.abort(new Error('interrupted'));
    await running?.done;
  }

  names(): ReadonlySet<string> {
    return new Set(this.#running.keys());
  }

  /**
   * Stops every build.
   *
   * @param mark marks them as interrupted, so that the next builder starts them again. False if another builder is running
   *   them already.
   */
  async stopAll(mark: boolean): Promise<void> {
    const all = [...this.#running.values()];
    for (const { abort } of all) abort.abort(new Error('the builder is stopping'));
    await Promise.all(all.map(({ done }) => done));
    if (!mark) return;
    const message = 'The Machine OS Builder was stopped while it built the image';
    await Promise.all(all.map(({ job }) => this.#report(job, { kind: 'interrupted', message })));
  }

  async #run(job: BuildJob, signal: AbortSignal): Promise<void> {
    const { metrics } = this.#options;
    const build = job.build.metadata.name;
    try {
      await this.#attempts(job, signal);
    } catch (error) {
      if (signal.aborted) metrics?.interrupted();
      // Whoever aborts a build reports why. Anything else is an error of the API server: reconciliation starts it again.
      else this.#reporters(job).log.error({ build, err: error }, 'status of the build could not be written');
    } finally {
      this.#running.delete(build);
    }
  }

  /** Between two attempts the slot is another build's: the delays may be minutes. */
  async #attempts(job: BuildJob, signal: AbortSignal): Promise<void> {
    const queued = performance.now();
    for (let attempt = 1; ; attempt += 1) {
      const retry = await this.#slots.hold(signal, async () => {
        if (attempt === 1) {
          this.#options.metrics?.started(secondsSince(queued));
          await this.#report(job, { kind: 'started' });
        }
        return this.#attempt(job, attempt, signal);
      });
      if (retry === undefined) return;
      await delay(retry.inMs, undefined, { signal });
    }
  }

  /** @returns when to retry; undefined once the build has succeeded or failed for good. */
  async #attempt(
    job: BuildJob,
    attempt: number,
    signal: AbortSignal,
  ): Promise<{ readonly inMs: number } | undefined> {
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
      await this.#report(job, { kind: 'succeeded', ...result });
      metrics?.succeeded(result.way, secondsSince(startedAt), result.bytes);
      this.#reportSuccess(job, result);
      return undefined;
    } catch (error) {
      if (signal.aborted) throw error;
      const failure = BuildFailure.from(error);
      trace.failed(failure);
      const decision = decideRetry(attempt, failure);
      metrics?.failed(failure, secondsSince(startedAt), decision.kind === 'giveUp');
      const { log, events } = this.#reporters(job);
      log.warn(
        { build: job.build.metadata.name, attempt, err: failure.message, next: decision.kind },
        'build failed',
      );
      const { reason, message, logTail } = failure;
      if (decision.kind === 'giveUp') {
        await this.#report(job, { kind: 'failed', reason, message, logTail });
        events.warning(job.build, reason, message);
        return undefined;
      }
      const { of, inMs } = decision;
      await this.#report(job, { kind: 'retrying', attempt, of, why: message, inMs });
      return decision;
    }
  }

  async #report(job: BuildJob, phase: BuildPhase): Promise<void> {
    const { client, now } = this.#options;
    await updateStatus(client, MachineOSBuilds, job.build, (current) =>
      isOver(current) ? current.status : buildStatus(current.status, phase, now().toISOString()),
    );
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

function secondsSince(start: number): number {
  return (performance.now() - start) / 1_000;
}
