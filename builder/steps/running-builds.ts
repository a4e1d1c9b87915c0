import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { MachineConfig } from '../../api/machine-config.ts';
import { type MachineOSBuild, MachineOSBuilds } from '../../api/machine-os-build.ts';
import type { MachineOSConfig } from '../../api/machine-os-config.ts';
import { aboutChange, type Tellers } from '../../cluster/about-change.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import type { EventRecorder } from '../../cluster/events.ts';
import type { Tracer } from '../../cluster/tracing/span.ts';
import { updateStatus } from '../../cluster/update-status.ts';
import { BuildFailure } from '../build-failure.ts';
import type { BuildMetrics } from '../build-metrics.ts';
import { isOver } from '../build-state.ts';
import { buildRetryPolicy, decideRetry } from '../retry.ts';
import { createSlots } from '../slots.ts';
import { type BuildPhase, buildStatus } from '../status.ts';
import { type Step, traceBuild } from './build-trace.ts';

/** One build to do. */
export interface BuildJob {
  readonly build: MachineOSBuild;
  readonly machineOSConfig: MachineOSConfig;
  readonly rendered: MachineConfig;
  /** By tag or digest, as it was asked for. */
  readonly baseImage: string;
  /** In Go's words: of several the image is an index. */
  readonly architectures: readonly string[];
}

export type BuildResult = Omit<Extract<BuildPhase, { kind: 'succeeded' }>, 'kind'>;

export interface RunningBuildsOptions {
  readonly client: ApiClient;
  readonly events: EventRecorder;
  readonly log: Logger;
  readonly now: () => Date;
  /** Makes and pushes the image. @throws BuildFailure */
  readonly build: (job: BuildJob, step: Step, signal: AbortSignal) => Promise<BuildResult>;
  /** How many builds go on at once; an appended layer costs little, so a pool seldom waits for another. */
  readonly parallel: number;
  readonly metrics: BuildMetrics;
  readonly tracer: Tracer;
}

/** The builds that this process is at work on. */
export interface RunningBuilds {
  start(job: BuildJob): void;
  /** Stops a build and waits until it has stopped; a build that is not running is none to stop. */
  abort(name: string): Promise<void>;
  names(): ReadonlySet<string>;
  /**
   * Stops everything.
   *
   * @param mark marks it as interrupted, so that the next builder begins anew. Not for what another builder is at work on.
   */
  stopAll(mark: boolean): Promise<void>;
}

/** @returns a runner without any build yet. */
export function createRunningBuilds(options: RunningBuildsOptions): RunningBuilds {
  const running = new Map<
    string,
    { readonly abort: AbortController; readonly done: Promise<void>; readonly job: BuildJob }
  >();
  const slots = createSlots(options.parallel);

  async function report(job: BuildJob, phase: BuildPhase): Promise<void> {
    await updateStatus(options.client, MachineOSBuilds, job.build, (seen) =>
      isOver(seen) ? seen.status : buildStatus(seen.status, phase, options.now().toISOString()),
    );
  }

  const tellers = ({ rendered }: BuildJob): Tellers => aboutChange(options, rendered.metadata.name);

  function tellSuccess(job: BuildJob, { image, way, summary, warnings = [] }: BuildResult): void {
    const { build } = job;
    const { name } = build.metadata;
    const { log, events } = tellers(job);
    events.normal(build, 'BuildSucceeded', `${image}: ${summary}`);
    for (const warning of warnings) {
      events.warning(build, 'ProvenanceNotAttached', warning);
      log.warn({ build: name, warning }, 'provenance not attached');
    }
    log.info({ build: name, image, way }, 'build succeeded');
  }

  async function attempts(job: BuildJob, signal: AbortSignal): Promise<void> {
    await report(job, { kind: 'started' });
    for (let attempt = 1; ; attempt += 1) {
      const began = performance.now();
      const trace = traceBuild(options.tracer, job, attempt);
      try {
        const result = await options.build(job, trace.step, signal);
        trace.succeeded(result);
        await report(job, { kind: 'succeeded', ...result });
        options.metrics.succeeded(result.way, secondsSince(began), result.bytes);
        tellSuccess(job, result);
        return;
      } catch (error) {
        if (signal.aborted) throw error;
        const failure = BuildFailure.from(error);
        trace.failed(failure);
        const decision = decideRetry(buildRetryPolicy, attempt, failure.temporary, failure.retryAfterMs);
        options.metrics.failed(failure, secondsSince(began), decision.kind === 'giveUp');
        const { log, events } = tellers(job);
        log.warn(
          { build: job.build.metadata.name, attempt, err: failure.message, next: decision.kind },
          'build failed',
        );
        if (decision.kind === 'giveUp') {
          const { reason, message, logTail } = failure;
          await report(job, { kind: 'failed', reason, message, logTail });
          events.warning(job.build, reason, message);
          return;
        }
        const of = buildRetryPolicy.attempts;
        await report(job, { kind: 'retrying', attempt, of, why: failure.message, inMs: decision.inMs });
        await delay(decision.inMs, undefined, { signal });
      }
    }
  }

  async function run(job: BuildJob, signal: AbortSignal): Promise<void> {
    const build = job.build.metadata.name;
    const asked = performance.now();
    try {
      await slots.hold(signal, () => {
        options.metrics.started(secondsSince(asked));
        return attempts(job, signal);
      });
    } catch (error) {
      if (signal.aborted) options.metrics.interrupted();
      // Aborted: whoever aborted tells why. Anything else is trouble with the API server; the build is found again.
      if (!signal.aborted) tellers(job).log.error({ build, err: error }, 'build could not be reported');
    } finally {
      running.delete(build);
    }
  }

  return {
    start(job) {
      const name = job.build.metadata.name;
      if (running.has(name)) return;
      const abort = new AbortController();
      running.set(name, { abort, job, done: run(job, abort.signal) });
    },
    async abort(name) {
      const entry = running.get(name);
      entry?.abort.abort(new Error('interrupted'));
      await entry?.done;
    },
    names: () => new Set(running.keys()),
    async stopAll(mark) {
      const all = [...running.values()];
      for (const { abort } of all) abort.abort(new Error('the builder is stopping'));
      await Promise.all(all.map(({ done }) => done));
      if (!mark) return;
      const message = 'the Machine OS Builder was stopped while the image was being built';
      await Promise.all(all.map(({ job }) => report(job, { kind: 'interrupted', message })));
    },
  };
}

function secondsSince(start: number): number {
  return (performance.now() - start) / 1_000;
}
