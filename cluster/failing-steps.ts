import { errorMessage } from '../api/error-message.ts';
import { MOST_STEPS, type ReportedStep } from '../api/failing-step.ts';
import { type KubernetesObject, toSeconds } from '../api/object.ts';
import { present } from '../api/present.ts';
import { isConflict } from './api-client.ts';
import type { EventRecorder } from './events.ts';
import { type Failure, failureOf, REPORT_AFTER } from './failure.ts';
import { type Backoff, backoffMs } from './work-queue.ts';

/** The object that a step is about. */
export type StepObject = Pick<KubernetesObject, 'apiVersion' | 'kind'> & {
  readonly metadata: Pick<KubernetesObject['metadata'], 'name' | 'namespace' | 'uid'>;
};

/** A step of a process on an object that has failed each time it was retried. */
export interface FailingStep {
  readonly object: StepObject;
  /** What the process is doing, in the -ing form: "draining it". */
  readonly doing: string;
  /** How it failed last. */
  readonly failure: Failure;
  /** When it failed first, in ms since the epoch. */
  readonly since: number;
  /** When it failed last. */
  readonly lastAt: number;
  readonly failures: number;
  /** When it is tried again at the earliest. */
  readonly retryAt: number;
  /** It is reported until it succeeds: a 429 that becomes a 500 is not a recovery. */
  readonly isReported: boolean;
}

const BACKOFF: Backoff = { firstMs: 50, longestMs: 60_000 };

/**
 * @param before how the same step has failed until now; undefined: it has not.
 * @param now ms since the epoch.
 * @param random 0 to 1: spreads steps that failed together.
 * @returns the step after one more failure.
 */
function failedAgain(
  before: FailingStep | undefined,
  { object, doing }: Pick<FailingStep, 'object' | 'doing'>,
  failure: Failure,
  now: number,
  random: number,
): FailingStep {
  const failures = (before?.failures ?? 0) + 1;
  const wait = Math.max(backoffMs(BACKOFF, failures, random), failure.retryAfterMs ?? 0);
  const since = before?.since ?? now;
  const step = { object, doing, failure, since, lastAt: now, failures, retryAt: now + wait };
  return { ...step, isReported: before?.isReported === true || isDue({ failure, since }, now) };
}

/** @returns whether people have to be told that a step fails. @param now ms since the epoch. */
function isDue({ failure, since }: Pick<FailingStep, 'failure' | 'since'>, now: number): boolean {
  return now - since >= REPORT_AFTER[failure.kind];
}

/** @returns what fails and why: a clause that completes "NAME: …". */
export function formatFailing({ doing, failure }: Pick<FailingStep, 'doing' | 'failure'>): string {
  return `${doing} fails: ${failure.why}`;
}

/** @returns the same with the object before it. */
export function formatFailingOn(step: Pick<FailingStep, 'object' | 'doing' | 'failure'>): string {
  const { kind, metadata } = step.object;
  const name = metadata.namespace === undefined ? metadata.name : `${metadata.namespace}/${metadata.name}`;
  return `${kind} ${name}: ${formatFailing(step)}`;
}

/** @returns what fails as a status has it, the longest first. */
export function reportedSteps(failing: readonly FailingStep[]): ReportedStep[] {
  return failing
    .toSorted((a, b) => a.since - b.since)
    .slice(0, MOST_STEPS)
    .map(({ object: { apiVersion, kind, metadata }, doing, failure, since }) => ({
      apiVersion,
      kind,
      name: metadata.name,
      ...present({ namespace: metadata.namespace }),
      step: doing,
      reason: failure.kind,
      message: failure.why,
      since: toSeconds(new Date(since)),
    }));
}

/**
 * ms within which a pass reports changes of failing steps; a failing pass has its own back-off, which this must not
 * replace.
 */
export const TELL_WITHIN_MS = 5_000;

/** Records an event about a step that people have to be told of. */
export function warnOfStep(events: Pick<EventRecorder, 'warning'>, step: FailingStep): void {
  const text = formatFailing(step);
  events.warning(step.object, 'StepFailing', `${text.charAt(0).toUpperCase()}${text.slice(1)}`);
}

/** Several steps of one pass failed; each is recorded, and the rest of the pass was completed. */
export class StepsFailed extends AggregateError {
  override readonly name = 'StepsFailed';
  /** ms after which the next pass is needed. */
  readonly retryAfterMs: number;

  constructor(errors: readonly unknown[], retryAfterMs: number) {
    const messages = errors.map(errorMessage);
    super(errors, [...new Set(messages)].slice(0, 3).join('; '));
    this.retryAfterMs = retryAfterMs;
  }
}

/** @returns whether nothing is wrong but that somebody else wrote in between. */
export function isOnlyConflict(error: unknown): boolean {
  return error instanceof AggregateError ? error.errors.every(isOnlyConflict) : isConflict(error);
}

/** What one controller does to the object of a key. */
export interface KeyedStep {
  readonly doing: string;
  readonly objectOf: (key: string) => StepObject | undefined;
}

export interface FailingStepsParts {
  /** ms since the epoch. */
  readonly now: () => number;
  readonly random?: () => number;
  /** Called when a step is to be reported: when it has failed for long enough, and when it fails for another reason. */
  readonly onReport?: (step: FailingStep) => void;
  /** Called when the reported steps have changed: a step started to fail, or one that failed has succeeded. */
  readonly onChange?: (object: StepObject) => void;
}

/** ms; failing steps are retried every minute, so a step that was not tried for longer is no longer needed. */
const FORGOTTEN_AFTER = 600_000;

/**
 * What fails in this process, and since when. It is in memory, because a failing write can't be relied on to be
 * recorded by another one; a process that restarts meets the same failure, and restores what statuses report
 * (`restore`).
 */
export class FailingSteps {
  readonly #parts: FailingStepsParts;
  readonly #steps = new Map<string, FailingStep>();

  constructor(parts: FailingStepsParts) {
    this.#parts = parts;
  }

  /** Takes down that a step has failed. */
  failed(object: StepObject, doing: string, error: unknown): FailingStep {
    const { now, random = Math.random } = this.#parts;
    const key = keyOf(object, doing);
    const before = this.#steps.get(key);
    const step = failedAgain(before, { object, doing }, failureOf(error), now(), random());
    this.#set(before, step);
    return step;
  }

  /** Takes down that a step was taken, or is no longer to be taken. */
  over(object: StepObject, doing: string): void {
    const key = keyOf(object, doing);
    const before = this.#steps.get(key);
    if (before === undefined) return;
    this.#steps.delete(key);
    if (before.isReported) this.#parts.onChange?.(object);
  }

  find(object: StepObject, doing: string): FailingStep | undefined {
    return this.#steps.get(keyOf(object, doing));
  }

  /** @returns the steps that people have to be told of, in the order in which they began to fail. */
  reported(): readonly FailingStep[] {
    const now = this.#parts.now();
    for (const [key, step] of this.#steps) {
      if (now - step.lastAt > FORGOTTEN_AFTER) {
        this.#steps.delete(key);
        if (step.isReported) this.#parts.onChange?.(step.object);
      } else if (!step.isReported && isDue(step, now)) this.#set(step, { ...step, isReported: true });
    }
    return [...this.#steps.values()].filter((step) => step.isReported);
  }

  /** Every step that fails, reported or not. */
  all(): readonly FailingStep[] {
    return [...this.#steps.values()];
  }

  /** Restores what an earlier process reported, for steps that this process has not tried yet. */
  restore(steps: readonly Pick<FailingStep, 'object' | 'doing' | 'failure' | 'since'>[]): void {
    const now = this.#parts.now();
    for (const step of steps) {
      const key = keyOf(step.object, step.doing);
      if (this.#steps.has(key)) continue;
      this.#steps.set(key, { ...step, lastAt: now, failures: 1, retryAt: now, isReported: true });
    }
  }

  #set(before: FailingStep | undefined, step: FailingStep): void {
    this.#steps.set(keyOf(step.object, step.doing), step);
    if (!step.isReported) return;
    // Words may differ with every answer; kinds hardly do.
    if (before?.isReported === true && before.failure.kind === step.failure.kind) return;
    this.#parts.onReport?.(step);
    this.#parts.onChange?.(step.object);
  }
}

function keyOf({ kind, metadata }: StepObject, doing: string): string {
  return JSON.stringify([kind, metadata.namespace ?? '', metadata.name, doing]);
}
