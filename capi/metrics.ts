import { Counter, Histogram, Registry } from 'prom-client';
import type { CanUpdateAnswer, UpdateMachineAnswer } from './contract/answers.ts';
import type { Hook } from './contract/hooks.ts';

/** What a hook answers, by the kind of the answer. */
export type AnswerKind = CanUpdateAnswer['kind'] | UpdateMachineAnswer['kind'];

/** Cluster API waits 10 s. */
const SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** The metrics of the update extension. */
export class ExtensionMetrics {
  readonly registry = new Registry();
  readonly #hooks = new Histogram({
    name: 'shale_cluster_api_hook_duration_seconds',
    help: 'Seconds until a hook was answered, by hook and answer (inPlace, newMachines, done, inProgress, failure).',
    labelNames: ['hook', 'answer'],
    buckets: SECONDS,
    registers: [this.registry],
  });
  readonly #failures = new Counter({
    name: 'shale_cluster_api_pass_failures_total',
    help: 'Times that what a Cluster needs between hooks could not be done, such as for a workload cluster that does not answer.',
    registers: [this.registry],
  });

  /** @param seconds that the answer took. */
  answered(hook: Hook, answer: AnswerKind, seconds: number): void {
    this.#hooks.observe({ hook, answer }, seconds);
  }

  passFailed(): void {
    this.#failures.inc();
  }
}
