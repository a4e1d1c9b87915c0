import { generateKeyPairSync } from 'node:crypto';
import { MCO_GROUP } from '../../../api/described-labels.ts';
import { type Node, Nodes, Secrets } from '../../../api/kubernetes.ts';
import { MachineConfigPools } from '../../../api/machine-config-pool.ts';
import {
  DEFAULT_NAMESPACE,
  labels,
  NODE_PULL_SECRET,
  PULL_SECRET_KEY,
  SIGNING_KEY_SECRET,
  SWITCH_CONFIG_MAP,
} from '../../../api/names.ts';
import type { KubernetesObject } from '../../../api/object.ts';
import { isConflict, isNotFound } from '../../../cluster/api-client.ts';
import { createLogger } from '../../../cluster/log.ts';
import { applyObjects } from '../../../workshop/sandbox/manifests/apply.ts';
import { NO_NODE } from '../world/scripted-nodes.ts';
import type { World } from '../world/world.ts';

/** Files of the campaign's MachineConfigs; what each asks of a node is in examples/90-disruption-policy.yaml. */
export const SLOTS = [
  '/etc/motd.d/90-soak.motd',
  '/etc/sysctl.d/90-soak.conf',
  '/etc/chrony.conf',
  '/etc/soak/reboots.conf',
  '/var/lib/soak/reboots.conf',
] as const;
export type Slot = (typeof SLOTS)[number];
/** A file of each role's own, which tells each edit apart and asks nothing of a node. */
const markOf = (role: string) => `/etc/motd.d/91-soak-${role}.motd`;

/** A MachineConfig after an edit. */
interface Edited {
  readonly token: string;
  /** The text of each file. */
  readonly files: ReadonlyMap<Slot, string>;
}

/** What an administrator of the cluster does in a campaign. Edits are counted, so that each has a text of its own. */
export class Admin {
  readonly #world: World;
  readonly #log = createLogger('soak', 'silent');
  readonly #past = new Map<string, readonly Edited[]>();
  readonly #cordoned = new Set<string>();
  #edits = 0;
  #layered = false;

  constructor(world: World) {
    this.#world = world;
  }

  /** @returns the mode that the switch asks of every node. */
  get mode(): 'Standard' | 'Layered' {
    return this.#layered ? 'Layered' : 'Standard';
  }

  /**
   * Writes another text to a file of the role's MachineConfig; removes the file where it has one and `removes` says so.
   */
  async edit(role: string, slot: Slot, removes: boolean): Promise<string> {
    this.#edits += 1;
    const token = `edit-${this.#edits}.`;
    const past = this.#past.get(role) ?? [];
    const files = new Map(past.at(-1)?.files);
    const isRemoved = removes && files.delete(slot);
    if (!isRemoved) files.set(slot, `# ${token}\n`);
    this.#past.set(role, [...past, { token, files }]);
    await this.#write(role, { token, files });
    return `${token} ${isRemoved ? 'removes' : 'writes'} ${slot}`;
  }

  /** Returns to exactly what the role's MachineConfig was before its last edits. */
  async revert(role: string, edits: number): Promise<string> {
    const past = this.#past.get(role) ?? [];
    const kept = past.slice(0, Math.max(1, past.length - edits));
    const last = kept.at(-1);
    if (last === undefined) return 'there is nothing to return to';
    this.#past.set(role, kept);
    await this.#write(role, last);
    return `returns to ${last.token}`;
  }

  async #write(role: string, { token, files }: Edited): Promise<void> {
    const name = `50-soak-${role}`;
    const contents = [...files, [markOf(role), `${token}\n`] as const].map(([path, text]) => ({
      path,
      mode: 0o644,
      overwrite: true,
      contents: { source: `data:,${encodeURIComponent(text)}` },
    }));
    this.#world.recorder.record({ what: 'edit', machineConfig: name, token });
    await this.apply({
      apiVersion: `${MCO_GROUP}/v1`,
      kind: 'MachineConfig',
      metadata: { name, labels: { [labels.role]: role } },
      spec: { config: { ignition: { version: '3.4.0' }, storage: { files: contents } } },
    } as KubernetesObject);
  }

  async setSwitch(on: boolean): Promise<void> {
    this.#layered = on;
    await this.apply({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: SWITCH_CONFIG_MAP, namespace: DEFAULT_NAMESPACE },
      data: { enabled: String(on), imageRepository: `${this.#world.cluster.registry.host}/os/{pool}` },
    } as KubernetesObject);
  }

  async pause(pool: string, paused: boolean): Promise<void> {
    await this.#world.client.patch(MachineConfigPools, pool, { type: 'merge', body: { spec: { paused } } });
  }

  /** Cordons a node that is schedulable: of any other nobody could tell whose cordon it is. */
  async cordon(name: string): Promise<string | undefined> {
    const node = await this.#world.client.find(Nodes, name);
    if (node === undefined) return NO_NODE;
    if (node.spec?.unschedulable === true) return 'is cordoned already';
    const { resourceVersion = '' } = node.metadata;
    const body = { metadata: { resourceVersion }, spec: { unschedulable: true } };
    try {
      this.#see(await this.#world.client.patch(Nodes, name, { type: 'merge', body }), true);
      this.#cordoned.add(name);
      return undefined;
    } catch (error) {
      if (!isConflict(error) && !isNotFound(error)) throw error;
      return 'was changed meanwhile';
    }
  }

  async uncordon(name: string): Promise<void> {
    if (!this.#cordoned.delete(name)) return;
    const body = { spec: { unschedulable: null } };
    const node = await this.#patchNode(name, body);
    if (node !== undefined) this.#see(node, false);
  }

  /** @returns nothing where the Node was deleted, and what an admin wrote to it is gone as well. */
  async #patchNode(name: string, body: object): Promise<Node | undefined> {
    try {
      return await this.#world.client.patch(Nodes, name, { type: 'merge', body });
    } catch (error) {
      if (!isNotFound(error)) throw error;
      return undefined;
    }
  }

  #see({ metadata }: Node, cordoned: boolean): void {
    const version = Number(metadata.resourceVersion);
    this.#world.recorder.record({ what: 'admin cordon', node: metadata.name, cordoned, version });
  }

  /** Gives a node a role, or takes it: the pool of that name has it or loses it. */
  async setRole(node: string, role: string, has: boolean): Promise<void> {
    const body = { metadata: { labels: { [`${labels.nodeRolePrefix}${role}`]: has ? '' : null } } };
    await this.#patchNode(node, body);
  }

  /** Replaces the key that images are signed with. */
  async rotateSigningKey(): Promise<string | undefined> {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const pem = String(privateKey.export({ type: 'pkcs8', format: 'pem' }));
    const body = { data: { 'cosign.key': Buffer.from(pem).toString('base64'), 'cosign.pub': null } };
    this.#world.recorder.keepSecret(pem.split('\n')[1] ?? pem);
    try {
      const place = { namespace: DEFAULT_NAMESPACE };
      await this.#world.client.patch(Secrets, SIGNING_KEY_SECRET, { type: 'merge', body }, place);
      return undefined;
    } catch (error) {
      if (!isNotFound(error)) throw error;
      return 'there is none';
    }
  }

  /** Creates the pull secret of the nodes, for a registry that nobody asks. */
  async createPullSecret(password: string): Promise<void> {
    this.#world.recorder.keepSecret(password);
    const auth = Buffer.from(`soak:${password}`).toString('base64');
    this.#world.recorder.keepSecret(auth);
    const content = JSON.stringify({ auths: { 'registry.example.com': { auth } } });
    await this.apply({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: NODE_PULL_SECRET, namespace: DEFAULT_NAMESPACE },
      type: 'kubernetes.io/dockerconfigjson',
      data: { [PULL_SECRET_KEY]: Buffer.from(content).toString('base64') },
    } as KubernetesObject);
  }

  async apply(...objects: readonly KubernetesObject[]): Promise<void> {
    await applyObjects(this.#world.client, objects, { log: this.#log, signal: AbortSignal.timeout(60_000) });
  }
}
