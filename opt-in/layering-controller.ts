import type { Logger } from 'pino';
import type { ConfigMap, Deployment } from '../api/kubernetes.ts';
import { MachineConfigurations } from '../api/machine-configuration.ts';
import { MACHINE_CONFIGURATION } from '../api/names.ts';
import type { NewObject } from '../api/object.ts';
import type { ApiClient } from '../cluster/api-client.ts';
import { done, type Result, requeueAfter } from '../cluster/controller.ts';
import type { EventRecorder } from '../cluster/events.ts';
import { updateStatus } from '../cluster/update-object.ts';
import { type ImagePruner, LayeringActor } from './act-on-layering.ts';
import { decideLayering, type LayeringStep } from './decide-layering.ts';
import { type LayeringCaches, LayeringObserver, type ObservedLayering } from './observe-layering.ts';
import { formatProblems, withLayeringCondition } from './status.ts';
import type { SwitchState } from './switch.ts';

export interface LayeringControllerParts {
  readonly client: ApiClient;
  readonly caches: LayeringCaches;
  readonly events: EventRecorder;
  readonly log: Logger;
  readonly pruner: ImagePruner;
  /** Where Shale runs. */
  readonly namespace: string;
  readonly desiredBuilder: NewObject<Deployment>;
  /** How many finished builds a pool keeps beyond those in use. */
  readonly keepImages: number;
  /** ms since the epoch. */
  readonly now: () => number;
}

/** ms after which a builder that is stopping, or nodes that are returning, are observed again if no event comes first. */
const WAIT_MS = 2_000;
/** Steps of one pass; each is followed by another observation. A pass that needs more continues in the next. */
const STEPS_OF_A_PASS = 8;

/** Reconciles layering with the layering switch and the MachineOSConfigs: observe, decide, act, one step at a time. */
export class LayeringController {
  readonly #parts: LayeringControllerParts;
  readonly #observer: LayeringObserver;
  readonly #actor: LayeringActor;

  constructor(parts: LayeringControllerParts) {
    this.#parts = parts;
    this.#observer = new LayeringObserver(parts);
    this.#actor = new LayeringActor(parts);
  }

  /** @param _key the whole of layering is one key. @throws ApiError */
  async reconcile(_key: string, signal: AbortSignal): Promise<Result> {
    const cached = this.#observer.fromCaches();
    await this.#report(cached, signal);
    if (decideLayering(cached).kind === 'settled') return done;
    for (let taken = 0; taken < STEPS_OF_A_PASS; taken += 1) {
      const step = await this.#nextStep(signal);
      if (step.kind === 'settled') return done;
      if (step.kind === 'wait') {
        this.#parts.log.info({ why: step.why }, 'layering waits');
        return requeueAfter(WAIT_MS);
      }
      await this.#actor.take(step, signal);
    }
    return requeueAfter(0);
  }

  /** An image must not be deleted while a node uses it, so pruning is decided again from the nodes as they are now. */
  async #nextStep(signal: AbortSignal): Promise<LayeringStep> {
    const observed = await this.#observer.fromServer('cached', signal);
    await this.#report(observed, signal);
    const step = decideLayering(observed);
    return step.kind === 'prune' ? decideLayering(await this.#observer.fromServer('live', signal)) : step;
  }

  async #report({ state, switchConfigMap }: ObservedLayering, signal: AbortSignal): Promise<void> {
    this.#warn(state, switchConfigMap);
    await this.#writeCondition(state, signal);
  }

  #warn(state: SwitchState, configMap: ConfigMap | undefined): void {
    if (state.kind !== 'invalid' || configMap === undefined) return;
    this.#parts.events.warning(configMap, 'InvalidSwitch', formatProblems(state.problems));
  }

  /** The MachineConfiguration holds the operator's status; until it exists there is nowhere to report. */
  async #writeCondition(state: SwitchState, signal: AbortSignal): Promise<void> {
    const { client, caches, now } = this.#parts;
    const configuration = caches.shared.machineConfigurations
      .list()
      .find(({ metadata }) => metadata.name === MACHINE_CONFIGURATION);
    if (configuration === undefined) return;
    await updateStatus(
      client,
      MachineConfigurations,
      configuration,
      ({ status }) => {
        const before = status?.conditions ?? [];
        const conditions = withLayeringCondition(before, state, new Date(now()));
        // The policy controller writes the first status.
        return before.length + conditions.length === 0 ? status : { ...status, conditions };
      },
      { signal },
    );
  }
}
