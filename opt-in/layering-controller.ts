import type { Logger } from 'pino';
import type { ConfigMap } from '../api/kubernetes.ts';
import { MachineConfigurations } from '../api/machine-configuration.ts';
import { MACHINE_CONFIGURATION } from '../api/names.ts';
import type { ApiClient } from '../cluster/api-client.ts';
import { done, type Result, requeueAfter } from '../cluster/controller.ts';
import type { EventRecorder } from '../cluster/events.ts';
import { type FailingSteps, formatFailing } from '../cluster/failing-steps.ts';
import { updateStatus } from '../cluster/update-object.ts';
import { type ImagePruner, LayeringActor, type LayeringActorParts } from './act-on-layering.ts';
import { decideLayering, type LayeringObservation, type LayeringStep } from './decide-layering.ts';
import {
  type LayeringCaches,
  LayeringObserver,
  type LayeringObserverParts,
  type ObservedLayering,
} from './observe-layering.ts';
import type { SeenBuilds } from './pushed-images/seen-builds.ts';
import { formatProblems, withLayeringCondition, withLayeringFailures } from './status.ts';
import type { SwitchState } from './switch.ts';

export interface LayeringControllerParts {
  readonly client: ApiClient;
  readonly caches: LayeringCaches;
  readonly events: EventRecorder;
  readonly log: Logger;
  readonly pruner: ImagePruner;
  /** Called for each build whose images are deleted. */
  readonly seen: Pick<SeenBuilds, 'prune'>;
  /** Where Shale runs. */
  readonly namespace: string;
  /** The key that images are signed with. */
  readonly signing: LayeringObserverParts['signing'] & LayeringActorParts['signing'];
  readonly desiredBuilder: LayeringObservation['desiredBuilder'];
  /** How many finished builds a pool keeps beyond those in use. */
  readonly keepImages: number;
  /** What of this fails. */
  readonly failing: Pick<FailingSteps, 'reported'>;
  /** ms since the epoch. */
  readonly now: () => number;
}

/**
 * ms after which a builder that is stopping, or nodes that are returning, are observed again if no event comes first.
 */
const WAIT_MS = 2_000;
/** How often layering that is on is observed without an event: the Secret with the signing key has none. */
const CHECK_MS = 60_000;
/** Steps of one pass; each is followed by another observation. A pass that needs more continues in the next. */
const STEPS_OF_A_PASS = 8;

/** Reconciles layering with the layering switch and the MachineOSConfigs: observe, decide, act, one step at a time. */
export class LayeringController {
  readonly #parts: LayeringControllerParts;
  readonly #observer: LayeringObserver;
  readonly #actor: LayeringActor;
  /** What was logged last as the reason of a wait. */
  #waitedFor: string | undefined;

  constructor(parts: LayeringControllerParts) {
    this.#parts = parts;
    this.#observer = new LayeringObserver(parts);
    this.#actor = new LayeringActor(parts);
  }

  /** @param _key the whole of layering is one key. @throws ApiError */
  async reconcile(_key: string, signal: AbortSignal): Promise<Result> {
    const cached = await this.#observer.fromCaches(signal);
    await this.#report(cached, signal);
    if (decideLayering(cached).kind === 'settled') return settled(cached);
    for (let taken = 0; taken < STEPS_OF_A_PASS; taken += 1) {
      const { step, observed } = await this.#nextStep(signal);
      if (step.kind === 'settled') return settled(observed);
      if (step.kind === 'wait') {
        this.#logWait(step.why);
        return requeueAfter(WAIT_MS);
      }
      this.#waitedFor = undefined;
      await this.#actor.take(step, signal);
    }
    return requeueAfter(0);
  }

  /** It looks again every two seconds, and returning the nodes of a pool takes minutes. */
  #logWait(why: string): void {
    if (why === this.#waitedFor) return;
    this.#waitedFor = why;
    this.#parts.log.info({ why }, 'layering waits');
  }

  /** An image must not be deleted while a node uses it, so pruning is decided again from the nodes as they are now. */
  async #nextStep(
    signal: AbortSignal,
  ): Promise<{ readonly step: LayeringStep; readonly observed: ObservedLayering }> {
    const observed = await this.#observer.fromServer('cached', signal);
    await this.#report(observed, signal);
    const step = decideLayering(observed);
    if (step.kind !== 'prune') return { step, observed };
    const live = await this.#observer.fromServer('live', signal);
    return { step: decideLayering(live), observed: live };
  }

  async #report(
    { state, switchConfigMap, signing, signingKey }: ObservedLayering,
    signal: AbortSignal,
  ): Promise<void> {
    this.#warn(state, switchConfigMap);
    if (signing === 'required' && signingKey.kind === 'unusable' && switchConfigMap !== undefined) {
      this.#parts.events.warning(
        switchConfigMap,
        'SigningKeyUnusable',
        `${signingKey.why}; no image is built until it is corrected`,
      );
    }
    await this.#writeCondition(state, signal);
  }

  #warn(state: SwitchState, configMap: ConfigMap | undefined): void {
    if (state.kind !== 'invalid' || configMap === undefined) return;
    this.#parts.events.warning(configMap, 'InvalidSwitch', formatProblems(state.problems));
  }

  /** The MachineConfiguration holds the operator's status; until it exists there is nowhere to report. */
  async #writeCondition(state: SwitchState, signal: AbortSignal): Promise<void> {
    const { client, caches, failing, now } = this.#parts;
    const failures = failing.reported().map(formatFailing).join('; ');
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
        const [at, generation] = [new Date(now()), status?.observedGeneration];
        const switched = withLayeringCondition(before, state, at, generation);
        const conditions = withLayeringFailures(switched, failures, at, generation);
        // The policy controller writes the first status.
        return before.length + conditions.length === 0 ? status : { ...status, conditions };
      },
      { signal },
    );
  }
}

function settled({ builder }: ObservedLayering): Result {
  return builder === undefined ? done : requeueAfter(CHECK_MS);
}
