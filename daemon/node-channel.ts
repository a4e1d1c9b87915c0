import type { Logger } from 'pino';
import {
  type MachineConfigNode,
  MachineConfigNodes,
  type NodeConditionType,
} from '../api/machine-config-node.ts';
import { annotations } from '../api/names.ts';
import { isNewer } from '../api/object.ts';
import type { ApiClient } from '../cluster/api-client.ts';
import { createInformer, type Informer } from '../cluster/informer.ts';
import { nodeReadiness } from '../cluster/node-readiness.ts';
import { setReadiness } from '../cluster/readiness.ts';
import { setCondition, updateStatus } from '../cluster/update-object.ts';
import type { Drift } from './content/drift/drift.ts';
import { changedByHand, statusOf } from './status.ts';
import type { NodeReport } from './steps/phase.ts';

export interface NodeChannelOptions {
  readonly client: ApiClient;
  readonly nodeName: string;
  readonly log: Logger;
  readonly now?: () => Date;
}

const WRITE_DEADLINE_MS = 30_000;

/**
 * The daemon's one channel to the operator: its own MachineConfigNode, whose spec it watches and whose status it
 * writes.
 */
export class NodeChannel {
  readonly #options: NodeChannelOptions;
  readonly #informer: Informer<MachineConfigNode>;
  readonly #now: () => Date;
  #object: MachineConfigNode | undefined;
  #changes = 0;
  #changed = Promise.withResolvers<void>();

  constructor(options: NodeChannelOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => new Date());
    const fieldSelector = `metadata.name=${options.nodeName}`;
    this.#informer = createInformer(options.client, MachineConfigNodes, { fieldSelector, log: options.log });
    this.#informer.onChange(({ type, object, old }) => {
      this.#object = type === 'DELETED' ? undefined : object;
      // A status that the daemon wrote itself is no reason to look again.
      const same = type === 'MODIFIED' && old !== undefined && requestsOf(old) === requestsOf(object);
      if (!same) this.lookAgain();
    });
  }

  /** Watches until the signal. */
  async run(signal: AbortSignal): Promise<void> {
    await this.#informer.start(signal);
    this.lookAgain();
  }

  /** @returns once the first list is in. */
  synced(): Promise<void> {
    return this.#informer.synced();
  }

  /** The object as it is last known; undefined while the operator has not made it. */
  get object(): MachineConfigNode | undefined {
    return this.#object;
  }

  /** Who else holds the node; undefined: nobody, as far as the operator knows. */
  get heldBy(): string | undefined {
    return this.#object?.spec.heldBy;
  }

  /** How often there was a reason to look again: to be taken before the object is read, and given to `changedSince`. */
  get changes(): number {
    return this.#changes;
  }

  /** @returns when there was such a reason since, the time is over, or the signal is aborted. */
  async changedSince(changes: number, ms: number, signal: AbortSignal): Promise<void> {
    if (this.#changes !== changes || signal.aborted) return;
    const over = Promise.withResolvers<void>();
    const timer = setTimeout(over.resolve, ms);
    const stop = () => over.resolve();
    signal.addEventListener('abort', stop, { once: true });
    await Promise.race([this.#changed.promise, over.promise]);
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
  }

  /** Ends `changedSince`: the spec, or something else that decides the next step, is another one. */
  lookAgain(): void {
    this.#changes += 1;
    this.#changed.resolve();
    this.#changed = Promise.withResolvers<void>();
  }

  /** Writes what the node is, where the status does not say it yet. @throws ApiError */
  publish(report: NodeReport, signal: AbortSignal): Promise<void> {
    return this.update((object, now) => statusOf(object, report, now), signal);
  }

  /** Says that the daemon can't tell what the node is; the rest of the status stays as it was. @throws ApiError */
  publishTrouble(
    reason: string,
    message: string,
    signal: AbortSignal,
    byHand?: readonly Drift[],
  ): Promise<void> {
    const condition = { type: 'NodeDegraded', status: 'True', reason, message } as const;
    return this.update(({ status = {} }, now) => {
      const observedGeneration = status.observedGeneration;
      const about = { ...condition, observedGeneration };
      const conditions = setCondition(status.conditions ?? [], about, now);
      const readiness = nodeReadiness(conditions);
      return {
        ...status,
        ...(byHand && { changedByHand: changedByHand(byHand) }),
        conditions: setReadiness(conditions, readiness, observedGeneration, now),
      };
    }, signal);
  }

  /**
   * Says that the API server refuses what the daemon asks of it, or no longer says so.
   *
   * @param failing what fails and why; undefined where nothing does. @throws ApiError
   */
  async publishFailing(failing: string | undefined, signal: AbortSignal): Promise<void> {
    const type: NodeConditionType = 'DaemonStepsFailing';
    const isSaid = this.#object?.status?.conditions?.some((each) => each.type === type) === true;
    if (failing === undefined && !isSaid) return;
    await this.update(({ status = {} }, now) => {
      const { observedGeneration, conditions: before = [] } = status;
      const condition = { type, status: 'True', reason: 'RequestFailed', message: failing ?? '' } as const;
      const conditions =
        failing === undefined
          ? before.filter((each) => each.type !== type)
          : setCondition(before, { ...condition, observedGeneration }, now);
      const readiness = nodeReadiness(conditions);
      return { ...status, conditions: setReadiness(conditions, readiness, observedGeneration, now) };
    }, signal);
  }

  /** @param compute given the object as it is then; returns the status to write. @throws ApiError */
  async update(
    compute: (object: MachineConfigNode, now: Date) => MachineConfigNode['status'],
    signal: AbortSignal,
  ): Promise<void> {
    if (this.#object === undefined) return;
    const bounded = AbortSignal.any([signal, AbortSignal.timeout(WRITE_DEADLINE_MS)]);
    const { client } = this.#options;
    const written = await updateStatus(
      client,
      MachineConfigNodes,
      this.#object,
      (object) => compute(object, this.#now()),
      {
        signal: bounded,
      },
    );
    // The watch may have been faster than the answer: what it has shown since is a later spec, or that the object is
    // gone.
    const known: MachineConfigNode | undefined = this.#object;
    if (known !== undefined && isNewer(written, known)) this.#object = written;
  }
}

/** @returns what people and the operator ask of the node, in one text. */
function requestsOf({ spec, metadata }: MachineConfigNode): string {
  const own = metadata.annotations ?? {};
  return JSON.stringify([
    spec,
    own[annotations.repair],
    own[annotations.retry],
    own[annotations.reboot],
    own[annotations.powerOff],
  ]);
}
