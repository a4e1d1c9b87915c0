import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import type { MachineConfigNode, MachineConfigNodeSpec } from '../../api/machine-config-node.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { type MachineConfiguration, MachineConfigurations } from '../../api/machine-configuration.ts';
import { parseDigestedPullspec } from '../../api/references.ts';
import { conditionIsTrue } from '../../cluster/update-object.ts';
import type { NodePorts } from '../../daemon/host/host.ts';
import type { OsStatus } from '../../daemon/os/backend.ts';
import { registrySource } from '../../daemon/os/ostree/registry-source.ts';
import { noMetrics } from '../../daemon/steps/node-metrics.ts';
import { bootNode } from '../../workshop/sandbox/node/boot.ts';
import { createNode, removeNode } from '../../workshop/sandbox/node/create.ts';
import { directoryNodeLayout } from '../../workshop/sandbox/node/directory-host.ts';
import { directoryNode } from '../../workshop/sandbox/node/directory-node.ts';
import { readServiceRecords } from '../../workshop/sandbox/node/service-recorder.ts';
import { copiedDirectory } from '../fixtures/copied-directory.ts';
import { eventually } from '../fixtures/daemon-loop.ts';
import { keptLogger } from '../fixtures/kept-logs.ts';
import {
  HOLDER,
  NODE,
  type NodeControlPlane,
  startNodeControlPlane,
} from '../fixtures/node-control-plane.ts';
import { deadline } from '../fixtures/patience.ts';
import { type RunningNode, runNode } from '../fixtures/running-daemon.ts';
import { type Snapshot, takeSnapshot } from './snapshot.ts';

/** Files of the node's admin, in the directories that the walk's configs use. */
const ADMINS: Readonly<Record<string, string>> = {
  '/etc/walk/admin.conf': 'admin\n',
  '/etc/systemd/system/admin.service': '[Service]\nExecStart=/bin/true\n',
  '/etc/systemd/system/crio.service.d/90-admin.conf': '[Service]\n',
  '/var/usrlocal/bin/admin-tool': '#!/bin/sh\n',
  '/var/lib/walk/admin': 'admin\n',
  '/var/home/core/.ssh/authorized_keys': 'ssh-ed25519 admin\n',
  '/var/opt/walk/admin': 'admin\n',
};

const LIMIT_MS = 60_000;
const emptyDirectory = copiedDirectory({ name: 'shale-walk', make: async () => undefined });

/** What a node has done since it was asked last. */
export interface Done {
  readonly booted: boolean;
  /** As a service manager was asked, in order: `restart chronyd.service`. */
  readonly services: readonly string[];
}

interface Parts {
  readonly dir: string;
  readonly ports: NodePorts;
  readonly control: NodeControlPlane;
  readonly running: RunningNode;
  /** Whether the last step of the daemon was an idle one, which has settled what the node boots next, too. */
  readonly isResting: () => boolean;
  /** Has isResting wait for another idle step. */
  readonly awake: () => void;
}

/** A directory node with a real ostree repository, its daemon, and the part of the API server that it knows. */
export class WalkNode implements AsyncDisposable {
  readonly #parts: Parts;
  #seen: { readonly bootID: string; readonly services: number };

  private constructor(parts: Parts, bootID: string) {
    this.#parts = parts;
    this.#seen = { bootID, services: 0 };
  }

  /**
   * @param host of the registry, by plain HTTP.
   * @param image the stock image of the node, by digest.
   */
  static async start(host: string, image: string): Promise<WalkNode> {
    const dir = await emptyDirectory();
    const { root } = directoryNodeLayout(dir);
    const source = registrySource({ root, plainHttp: new Set([host]) });
    const stock = parseDigestedPullspec(image);
    await createNode({ dir, name: NODE, image: stock, source, signal: deadline(LIMIT_MS) });
    await bootNode(dir);
    for (const [name, text] of Object.entries(ADMINS)) {
      await mkdir(path.dirname(path.join(root, name)), { recursive: true });
      await writeFile(path.join(root, name), text);
    }
    const log = keptLogger('the daemon');
    const control = await startNodeControlPlane(log);
    let resting = false;
    const metrics = {
      ...noMetrics,
      step: (step: string, _seconds: number, result: string) => {
        resting = step === 'idle' && result === 'done';
      },
    };
    const ports = directoryNode(dir, source);
    const power = { ...ports, dir, boot: async () => void (await bootNode(dir)) };
    const running = runNode(power, { client: control.client, nodeName: NODE, log, metrics });
    const awake = () => {
      resting = false;
    };
    const parts = { dir, ports, control, running, isResting: () => resting, awake };
    return new WalkNode(parts, await ports.host.bootID());
  }

  object(): Promise<MachineConfigNode> {
    return this.#parts.control.client.get(MachineConfigNodes, NODE);
  }

  /** Puts what the operator has made where the daemon reads it. */
  async publish(rendered: MachineConfig, configuration: MachineConfiguration): Promise<void> {
    const { client } = this.#parts.control;
    const known = await client.find(MachineConfigs, rendered.metadata.name);
    // Its pool is no object of this API server, which would collect what belongs to nothing.
    const { ownerReferences: _pool, ...own } = rendered.metadata;
    if (known === undefined) await client.create(MachineConfigs, { ...rendered, metadata: own });
    const { metadata, spec, status } = configuration;
    const made =
      (await client.find(MachineConfigurations, metadata.name)) ??
      (await client.create(MachineConfigurations, { ...configuration, metadata: { name: metadata.name } }));
    const replaced = await client.replace(MachineConfigurations, { ...made, ...(spec && { spec }) });
    await client.replaceStatus(MachineConfigurations, { ...replaced, ...(status && { status }) });
  }

  /** Gives it a target with a grant for whatever that takes. @returns it once it has come to rest there. */
  async bring(spec: MachineConfigNodeSpec): Promise<MachineConfigNode> {
    const { awake, control } = this.#parts;
    awake();
    const config = spec.configVersion.desired;
    const desired = spec.configImage?.desiredImage;
    const grant = { level: 'Disrupt', config, leaseHolder: HOLDER } as const;
    await control.want({ ...spec, grant: desired === undefined ? grant : { ...grant, image: desired } });
    return this.#atRest(
      ({ status }) =>
        conditionIsTrue(status?.conditions, 'Updated') &&
        status?.configVersion?.current === config &&
        status.configImage?.currentImage === desired &&
        (spec.osImage === undefined || status.baseImage === spec.osImage) &&
        status.mode === (desired === undefined ? 'Standard' : 'Layered'),
    );
  }

  /** Boots it without being asked. @returns it once it has come to rest. */
  async boot(): Promise<MachineConfigNode> {
    const { awake, ports, running } = this.#parts;
    awake();
    await running.boot();
    const bootID = await ports.host.bootID();
    return this.#atRest(
      ({ status }) => status?.bootID === bootID && conditionIsTrue(status.conditions, 'Updated'),
    );
  }

  async #atRest(holds: (object: MachineConfigNode) => boolean): Promise<MachineConfigNode> {
    const { control, isResting } = this.#parts;
    const object = await control.until('the node at rest', (node) => holds(node) || isStuck(node));
    if (isStuck(object)) return object;
    await eventually(() => {
      if (!isResting()) throw new Error('the daemon has not come to rest');
    });
    return this.object();
  }

  /** @returns what happened since the last call. */
  async done(): Promise<Done> {
    const { dir, ports } = this.#parts;
    const bootID = await ports.host.bootID();
    const records = await readServiceRecords(directoryNodeLayout(dir));
    const services = records.slice(this.#seen.services).map(({ action, unit }) => `${action} ${unit}`.trim());
    const booted = bootID !== this.#seen.bootID;
    this.#seen = { bootID, services: records.length };
    return { booted, services };
  }

  snapshot(directories: ReadonlySet<string>): Promise<Snapshot> {
    return takeSnapshot(this.#parts.ports.host.root, directories);
  }

  async kernelArguments(): Promise<readonly string[]> {
    return (await this.#deployments()).booted.kernelArguments;
  }

  /** @returns what the next boot takes: an image by digest. */
  async nextBoot(): Promise<string | undefined> {
    const { booted, staged } = await this.#deployments();
    return (staged ?? booted).image;
  }

  #deployments(): Promise<OsStatus> {
    return this.#parts.ports.backend.status(deadline(LIMIT_MS));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { control, dir, running } = this.#parts;
    await running[Symbol.asyncDispose]();
    await control[Symbol.asyncDispose]();
    await removeNode(dir);
  }
}

/** It won't come to its target: the walk reports why. */
function isStuck({ status }: MachineConfigNode): boolean {
  const conditions = status?.conditions ?? [];
  return (
    conditionIsTrue(conditions, 'NodeDegraded') ||
    conditions.some(
      ({ type, reason }) =>
        type === 'UpdatePrepared' && (reason === 'PrepareFailed' || reason === 'PrepareRefused'),
    )
  );
}

/** @returns why the node did not come to its target, as text; undefined where it did. */
export function whyStuck(node: MachineConfigNode): string | undefined {
  if (!isStuck(node)) return undefined;
  return (node.status?.conditions ?? [])
    .filter(({ message }) => message !== '')
    .map(({ type, status, reason, message }) => `${type}=${status} (${reason}): ${message}`)
    .join('\n');
}
