import type { Logger } from 'pino';
import { z } from 'zod';
import { errorMessage } from '../../api/error-message.ts';
import { ConfigMaps } from '../../api/kubernetes.ts';
import { FLEETLOCK_SLOTS_CONFIG_MAP } from '../../api/names.ts';
import { plural } from '../../api/plural.ts';
import type { FleetLock } from '../../api/pool-settings/values.ts';
import { type ApiClient, isAlreadyExists, isNotFound } from '../../cluster/api-client.ts';
import { done, type Result, requeueAfter } from '../../cluster/controller.ts';
import { isRecent } from '../../cluster/is-recent.ts';
import type { HoldState } from '../gates/hold.ts';
import { inParallel } from '../in-parallel.ts';
import type { FleetLockServers, Slot } from './servers.ts';

export interface FleetLockSlotsParts {
  readonly client: ApiClient;
  /** Of the record. */
  readonly namespace: string;
  readonly servers: FleetLockServers;
  /** @returns whether a node is at work, or has not come back from it. */
  readonly needsSlot: (node: string) => boolean;
  /** Called for a pool when there is an answer. */
  readonly onAnswer: (pool: string) => void;
  /** Called when a slot was asked for, so that {@link FleetLockSlots.reconcile} gives it back in the end. */
  readonly onAsked: () => void;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** ms since any moment. */
  readonly now: () => number;
}

/** What this process knows of a node's slot. */
interface Known {
  /** The slot that it is about; another one makes the answer worthless. */
  readonly key: string;
  readonly state: HoldState;
  /** When it was answered, in ms. */
  readonly at: number;
}

/** The name of the only key that this reconciles. */
export const FLEETLOCK_KEY = 'slots';
/** ms; nothing starts because of an older answer. The service may have given the slot to somebody else by hand. */
const FRESH = 15_000;
/** ms */
const DEADLINE = 10_000;
/** ms for which a slot that was asked for is kept where its node does not start. */
const KEPT = 60_000;
/** ms between two looks at the nodes that have slots. */
const LOOK_AGAIN = 2_000;
const PARALLEL = 8;

const Recorded = z.object({ url: z.string(), group: z.string(), id: z.string() });

/**
 * The slots of lock services that nodes of this cluster have, or may have. A slot is recorded before it is asked for,
 * so that the next operator gives it back, whatever became of the node, its pool and the request. A pass over a
 * pool never waits for a service: it holds the nodes that could start, and the answer causes the next pass.
 */
export class FleetLockSlots {
  readonly #parts: FleetLockSlotsParts;
  readonly #known = new Map<string, Known>();
  /** When a slot was last asked for, by node. */
  readonly #asked = new Map<string, number>();
  /** Nodes whose slot is being asked for or given back, each with the pool that waits for the end of it. */
  readonly #busy = new Map<string, string | undefined>();
  /** Pools of an operator that stopped a moment ago have to come to their nodes first. */
  readonly #startedAt: number;

  constructor(parts: FleetLockSlotsParts) {
    this.#parts = parts;
    this.#startedAt = parts.now();
  }

  /** @param id of the node. @returns what is known now; where that is too old, the service is asked. */
  stateOf(pool: string, node: string, id: string, lock: FleetLock): HoldState {
    const { now } = this.#parts;
    const slot = { ...lock, id };
    const key = JSON.stringify(slot);
    const known = this.#known.get(node);
    this.#asked.set(node, now());
    if (this.#busy.has(node)) {
      this.#busy.set(node, pool);
      return { kind: 'asking' };
    }
    const answer = known?.key === key ? known : undefined;
    if (answer !== undefined && isRecent(answer.at, now(), FRESH)) return answer.state;
    this.#begin(pool, node, slot, key);
    return answer === undefined || answer.state.kind === 'clear' ? { kind: 'asking' } : answer.state;
  }

  /**
   * Gives back the slots of nodes that need them no longer.
   *
   * @throws Error when a slot could not be given back; all others were.
   */
  async reconcile(_key: string, signal: AbortSignal): Promise<Result> {
    const record = await this.#read(signal);
    const over = [...record].filter(([node]) => !this.#isNeeded(node) && !this.#busy.has(node));
    const failures: unknown[] = [];
    await inParallel(over, PARALLEL, async ([node, slot]) => {
      this.#busy.set(node, undefined);
      this.#known.delete(node);
      try {
        await this.#giveBack(node, slot, signal);
      } catch (error) {
        failures.push(error);
      } finally {
        this.#end(node);
      }
    });
    signal.throwIfAborted();
    if (failures.length > 0)
      throw new AggregateError(
        failures,
        `${plural(failures.length, 'slot')} could not be given back: ${errorMessage(failures[0])}`,
      );
    return record.size > over.length ? requeueAfter(LOOK_AGAIN) : done;
  }

  #isNeeded(node: string): boolean {
    const { needsSlot, now } = this.#parts;
    return now() - (this.#asked.get(node) ?? this.#startedAt) < KEPT || needsSlot(node);
  }

  #begin(pool: string, node: string, slot: Slot, key: string): void {
    const { onAsked, log, now } = this.#parts;
    this.#busy.set(node, pool);
    this.#ask(node, slot)
      .then((state) => {
        this.#known.set(node, { key, state, at: now() });
        onAsked();
        this.#end(node);
      })
      .catch((error: unknown) => log.error({ node, err: error }, 'the answer about a slot is lost'));
  }

  #end(node: string): void {
    const { signal, onAnswer } = this.#parts;
    const pool = this.#busy.get(node);
    this.#busy.delete(node);
    if (pool !== undefined && !signal.aborted) onAnswer(pool);
  }

  async #ask(node: string, slot: Slot): Promise<HoldState> {
    const { servers, signal, log } = this.#parts;
    const until = AbortSignal.any([signal, AbortSignal.timeout(DEADLINE)]);
    try {
      await this.#record(node, slot, until);
      const state = await servers.take(slot, until);
      if (state.kind === 'clear') log.info({ node, ...slot }, 'took a slot of the lock service');
      return state;
    } catch (error) {
      if (!signal.aborted) log.warn({ node, err: error }, 'a slot could not be asked for');
      return { kind: 'unknown', why: errorMessage(error) };
    }
  }

  /** A slot that the node has of another service or group, whose pool names this one now, is given back first. */
  async #record(node: string, slot: Slot, signal: AbortSignal): Promise<void> {
    const recorded = (await this.#read(signal)).get(node);
    if (recorded !== undefined && JSON.stringify(recorded) === JSON.stringify(slot)) return;
    if (recorded !== undefined) await this.#giveBack(node, recorded, signal);
    await this.#write(node, slot, signal);
  }

  async #giveBack(node: string, slot: Slot, signal: AbortSignal): Promise<void> {
    const { servers, log } = this.#parts;
    await servers.giveBack(slot, AbortSignal.any([signal, AbortSignal.timeout(DEADLINE)]));
    await this.#write(node, null, signal);
    log.info({ node, ...slot }, 'gave a slot of the lock service back');
  }

  /** @throws Error for an entry that nobody can read: its slot would never be given back. */
  async #read(signal: AbortSignal): Promise<ReadonlyMap<string, Slot>> {
    const { client, namespace } = this.#parts;
    const found = await client.find(ConfigMaps, FLEETLOCK_SLOTS_CONFIG_MAP, { namespace, signal });
    return new Map(Object.entries(found?.data ?? {}).map(([node, text]) => [node, readSlot(node, text)]));
  }

  async #write(node: string, slot: Slot | null, signal: AbortSignal): Promise<void> {
    const { client, namespace } = this.#parts;
    const data = { [node]: slot && JSON.stringify(slot) };
    const patch = () =>
      client.patch(
        ConfigMaps,
        FLEETLOCK_SLOTS_CONFIG_MAP,
        { type: 'merge', body: { data } },
        { namespace, signal },
      );
    try {
      await patch();
    } catch (error) {
      if (!isNotFound(error)) throw error;
      if (slot === null) return;
      await this.#create({ [node]: JSON.stringify(slot) }, patch, signal);
    }
  }

  async #create(
    data: Readonly<Record<string, string>>,
    patch: () => Promise<unknown>,
    signal: AbortSignal,
  ): Promise<void> {
    const { client, namespace } = this.#parts;
    const metadata = { name: FLEETLOCK_SLOTS_CONFIG_MAP, namespace };
    try {
      await client.create(ConfigMaps, { apiVersion: 'v1', kind: 'ConfigMap', metadata, data }, { signal });
    } catch (error) {
      // Another node's slot was the first one.
      if (!isAlreadyExists(error)) throw error;
      await patch();
    }
  }
}

function readSlot(node: string, text: string): Slot {
  try {
    // In this order of its fields, to compare it as text.
    const { url, group, id } = Recorded.parse(JSON.parse(text));
    return { url, group, id };
  } catch (error) {
    throw new Error(
      `ConfigMap ${FLEETLOCK_SLOTS_CONFIG_MAP}, data.${node} can't be read: expected JSON with url, group and id; give the slot back at its service, and remove the entry`,
      { cause: error },
    );
  }
}
