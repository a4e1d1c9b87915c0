import type { Logger } from 'pino';
import { type Clusters, NotKnownNow } from './clusters/clusters.ts';
import { withinHook } from './clusters/not-known.ts';
import type { CanUpdateAnswer, UpdateMachineAnswer } from './contract/answers.ts';
import type { Hook } from './contract/hooks.ts';
import { NotUnderstood } from './contract/not-understood.ts';
import {
  type CanUpdateRequest,
  readCanUpdateMachine,
  readCanUpdateMachineSet,
  readUpdateMachine,
} from './contract/requests.ts';
import { canUpdateResponse, updateMachineResponse } from './contract/responses.ts';
import { canUpdate, newMachines, refusedAtOnce } from './decide/can-update.ts';
import { changedParts } from './mapping/part-changes.ts';
import { machinePartsOf } from './mapping/parts-of.ts';
import { patchesBetween, type SpecPlace } from './mapping/patches.ts';
import type { AnswerKind, ExtensionMetrics } from './metrics.ts';

export interface HookOptions {
  readonly clusters: Clusters;
  readonly log: Logger;
  readonly metrics: Pick<ExtensionMetrics, 'answered'>;
}

/** What a hook says for whatever goes wrong: Cluster API asks again, and replaces nothing meanwhile. */
interface Failure {
  readonly kind: 'failure';
  readonly message: string;
}

const NO_OWNER = 'the machines belong to neither a MachineDeployment nor a KubeadmControlPlane';

/** Answers the hooks of updates in place. Requests are never logged: a bootstrap config may have secrets. */
export class UpdateHooks {
  readonly #clusters: Clusters;
  readonly #log: Logger;
  readonly #metrics: HookOptions['metrics'];

  constructor({ clusters, log, metrics }: HookOptions) {
    this.#clusters = clusters;
    this.#log = log;
    this.#metrics = metrics;
  }

  /**
   * @param read gives the body of the request, parsed as JSON. It may throw {@link NotUnderstood}.
   * @returns the response, also when the request can't be answered.
   */
  async respond(hook: Hook, read: () => Promise<unknown>, caller: AbortSignal): Promise<object> {
    // All that a call does has one deadline: an Event after a slow answer would make it late.
    const signal = withinHook(caller);
    switch (hook) {
      case 'CanUpdateMachine':
        return canUpdateResponse(
          hook,
          await this.#timed(hook, async () =>
            this.#canUpdate(readCanUpdateMachine(await read()), 'machine', signal),
          ),
        );
      case 'CanUpdateMachineSet':
        return canUpdateResponse(
          hook,
          await this.#timed(hook, async () =>
            this.#canUpdate(readCanUpdateMachineSet(await read()), 'template', signal),
          ),
        );
      case 'UpdateMachine':
        return updateMachineResponse(
          await this.#timed(hook, async () => this.#updateMachine(await read(), signal)),
        );
    }
  }

  async #canUpdate(
    { cluster, machine, owner, current, desired, settings }: CanUpdateRequest,
    place: SpecPlace,
    signal: AbortSignal,
  ): Promise<CanUpdateAnswer> {
    const parts = machinePartsOf(desired, settings);
    const changes = changedParts(machinePartsOf(current, settings), parts);
    if (owner === undefined) return newMachines(NO_OWNER);
    const patches = patchesBetween(current, desired, settings, place);
    const decide = async () => {
      const [workload, others] = await Promise.all([
        this.#clusters.readWorkload(cluster, signal),
        machine === undefined ? [] : this.#clusters.readOthers(owner, machine, settings, signal),
      ]);
      return canUpdate({ owner, changes, desired: parts, others, patches, settings }, workload);
    };
    const answer = refusedAtOnce(owner, changes) ?? (await decide());
    this.#log.info({ cluster, owner, answer: answer.kind }, answer.message);
    if (answer.kind === 'newMachines') {
      await this.#clusters.reportNewMachines(owner, answer.message, signal);
    }
    return answer;
  }

  async #updateMachine(body: unknown, signal: AbortSignal): Promise<UpdateMachineAnswer> {
    const { cluster, machine, owner } = readUpdateMachine(body);
    if (owner === undefined) return { kind: 'failure', message: NO_OWNER };
    const answer = await this.#clusters.updateMachine({ cluster, machine }, signal);
    this.#log.info({ cluster, machine, answer: answer.kind }, answer.message);
    return answer;
  }

  async #timed<T extends { readonly kind: AnswerKind }>(
    hook: Hook,
    answer: () => Promise<T>,
  ): Promise<T | Failure> {
    const startedAt = performance.now();
    const given = await this.#orFailure(hook, answer);
    this.#metrics.answered(hook, given.kind, (performance.now() - startedAt) / 1000);
    return given;
  }

  async #orFailure<T>(hook: Hook, answer: () => Promise<T>): Promise<T | Failure> {
    try {
      return await answer();
    } catch (error) {
      if (error instanceof NotKnownNow || error instanceof NotUnderstood) {
        this.#log.warn({ hook }, error.message);
        return { kind: 'failure', message: error.message };
      }
      this.#log.error({ err: error, hook }, 'a hook could not be answered');
      return { kind: 'failure', message: 'internal error; see the log of shale capi-extension' };
    }
  }
}
