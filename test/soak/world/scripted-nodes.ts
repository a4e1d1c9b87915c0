import { type Node, Nodes } from '../../../api/kubernetes.ts';
import { labels } from '../../../api/names.ts';
import { type ApiClient, isNotFound } from '../../../cluster/api-client.ts';
import { createLogger } from '../../../cluster/log.ts';
import { LiveFleet, type NodeScript } from '../../fixtures/fleet/live-fleet.ts';

/** The pool of the scripted nodes, and the role of its MachineConfigs. */
export const SCRIPTED_POOL = 'scripted';

/** Daemons that act at the same time. */
const WORKERS = 8;
/** What came of a fault of a Node that was deleted meanwhile. */
export const NO_NODE = 'there is no such Node';

/** @returns the names of so many scripted nodes: they are known before there is a cluster. */
export function scriptedNames(count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `${SCRIPTED_POOL}-${String(index).padStart(3, '0')}`);
}

/**
 * Nodes without an operating system: each is a Node with a daemon that keeps to the protocol. A campaign has hundreds
 * of them, and does to them what it can't do to the few machines: they leave the cluster for ever.
 */
export class ScriptedNodes {
  readonly #client: ApiClient;
  readonly #fleet: LiveFleet;
  readonly #scripts = new Map<string, NodeScript>();
  readonly #gone = new Set<string>();
  readonly #running: Promise<void>;

  /** @param client of the API server itself. @param signal ends the daemons. */
  constructor(client: ApiClient, signal: AbortSignal) {
    this.#client = client;
    this.#fleet = new LiveFleet(client, {
      log: createLogger('soak', 'silent'),
      workers: WORKERS,
      scriptOf: (name) => this.#scripts.get(name) ?? {},
      onUpdate: () => undefined,
      drives: (name) => name.startsWith(`${SCRIPTED_POOL}-`),
    });
    this.#running = this.#fleet.run(signal);
  }

  /** Resolves when every daemon has ended after the signal. */
  get ended(): Promise<void> {
    return this.#running;
  }

  /** Creates the pool, whose MachineConfigs are those of the workers and of its own role, and its nodes. */
  async create(names: readonly string[], signal: AbortSignal): Promise<void> {
    const values = ['worker', SCRIPTED_POOL];
    const machineConfigSelector = { matchExpressions: [{ key: labels.role, operator: 'In', values }] };
    const spec = { machineConfigSelector, maxUnavailable: '20%' };
    await this.#fleet.createPool(SCRIPTED_POOL, { spec }, signal);
    for (const name of names) await this.#register(name, signal);
  }

  /** The daemon gets no further with an update, or goes on. */
  hold(name: string, held: boolean): void {
    if (held) this.#scripts.set(name, { waitsBefore: 'acting' });
    else this.#scripts.delete(name);
    this.#fleet.wake(name);
  }

  /** @returns that there is no such Node any more, where it has left. */
  async setReady(name: string, ready: boolean): Promise<string | undefined> {
    try {
      await this.#fleet.setReady(name, ready);
      return undefined;
    } catch (error) {
      if (!isNotFound(error)) throw error;
      return NO_NODE;
    }
  }

  /**
   * Deletes the Node. @param forever it will not be registered again. @returns that there is none, where that is so.
   */
  async delete(name: string, forever: boolean): Promise<string | undefined> {
    if (forever) this.#gone.add(name);
    if ((await this.#find(name)) === undefined) return NO_NODE;
    await this.#client.delete(Nodes, name);
    return undefined;
  }

  /** A kubelet whose Node was deleted registers it again, with another uid, unless it has left for ever. */
  async registerAgain(name: string): Promise<void> {
    if (this.#gone.has(name) || (await this.#find(name)) !== undefined) return;
    await this.#register(name, AbortSignal.timeout(60_000));
  }

  #find(name: string): Promise<Node | undefined> {
    return this.#client.find(Nodes, name);
  }

  async #register(name: string, signal: AbortSignal): Promise<void> {
    await this.#fleet.createNode(name, SCRIPTED_POOL, {}, signal);
  }
}
