import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { onTestFinished } from 'vitest';
import type { MachineConfigNode, MachineConfigNodeSpec, UpdatePlan } from '../../api/machine-config-node.ts';
import { nodePaths } from '../../api/names.ts';
import { present } from '../../api/present.ts';
import type { DigestedPullspec } from '../../api/references.ts';
import { noWrongLabels } from '../../daemon/host/selinux-labels.ts';
import type { OsBackend } from '../../daemon/os/backend.ts';
import type { Current } from '../../daemon/records/current.ts';
import type { Preparation } from '../../daemon/steps/preparation.ts';
import { prepareLayered } from '../../daemon/steps/prepare-layered.ts';
import { prepareStandard } from '../../daemon/steps/prepare-standard.ts';
import { isAt, type PreparedUpdate, targetOf } from '../../daemon/steps/update.ts';
import { describeImage } from '../../image/append.ts';
import { parseReference } from '../../image/reference.ts';
import type { RegistryClient } from '../../image/registry/registry-client.ts';
import { answeringClient } from '../fixtures/answering-client.ts';
import { aMachineConfigNode } from '../fixtures/objects.ts';
import { deployment, neverHeld } from '../fixtures/step-context.ts';
import { ARCHITECTURE, POOL, type WalkCluster } from './walk-cluster.ts';

interface Parts {
  readonly name: string;
  readonly cluster: WalkCluster;
  readonly registry: RegistryClient;
  /** The stock image that it booted. */
  readonly stock: string;
  readonly signal: AbortSignal;
}

/** A node without a disk: what it decides is the daemon's, and what it decides is taken for done. */
export class PaperNode {
  readonly #parts: Parts;
  readonly #root: string;
  #current: Current | undefined;
  #spec: MachineConfigNodeSpec;

  private constructor(parts: Parts, root: string) {
    this.#parts = parts;
    this.#root = root;
    this.#spec = { node: { name: parts.name }, pool: { name: POOL }, configVersion: { desired: '' } };
  }

  static async start(parts: Parts): Promise<PaperNode> {
    const root = await mkdtemp(path.join(tmpdir(), 'shale-paper-'));
    onTestFinished(() => rm(root, { recursive: true }));
    // Nothing is on its disk, and nothing of it is to be compared.
    await mkdir(path.dirname(path.join(root, nodePaths.forceFile)), { recursive: true });
    await writeFile(path.join(root, nodePaths.forceFile), '');
    await mkdir(path.join(root, 'etc'), { recursive: true });
    await writeFile(path.join(root, 'etc/passwd'), 'core:x:1000:1000::/var/home/core:/bin/sh\n');
    await writeFile(path.join(root, 'etc/group'), 'core:x:1000:\n');
    return new PaperNode(parts, root);
  }

  /** As it reports itself. */
  get object(): MachineConfigNode {
    const current = this.#current;
    return aMachineConfigNode(this.#parts.name, this.#spec, {
      mode: current?.mode ?? 'Standard',
      baseImage: this.#booted,
      ...present({
        configVersion: current && { current: current.config, desired: this.#spec.configVersion.desired },
        configImage: current?.mode === 'Layered' ? { currentImage: current.image } : undefined,
      }),
    });
  }

  get #booted(): string {
    return this.#current?.baseImage ?? this.#parts.stock;
  }

  /** Gives it a target, which it does not take yet. */
  assign(spec: MachineConfigNodeSpec): void {
    this.#spec = spec;
  }

  isAtTarget(): boolean {
    return isAt(targetOf(this.#spec), this.#current);
  }

  /** @returns what its target asks of it; undefined where it runs it. */
  async ask(): Promise<UpdatePlan | undefined> {
    return this.isAtTarget() ? undefined : (await this.#prepare()).plan;
  }

  /** Takes its target. */
  async take(): Promise<void> {
    if (!this.isAtTarget()) this.#current = (await this.#prepare()).next;
  }

  #prepare(): Promise<PreparedUpdate> {
    const target = targetOf(this.#spec);
    const preparation = this.#preparation();
    return target.mode === 'Layered'
      ? prepareLayered(preparation, target)
      : prepareStandard(preparation, target);
  }

  #preparation(): Preparation {
    const { cluster, signal } = this.#parts;
    const booted = deployment('/booted', { image: this.#booted as DigestedPullspec });
    const staged = async (image: DigestedPullspec) =>
      deployment('/staged', { image, labels: await this.#labelsOf(image) });
    const backend: Partial<OsBackend> = {
      status: async () => ({ booted }),
      tool: async () => ({ name: 'ostree', installsPackages: false }),
      unstage: async () => undefined,
      fetch: staged,
      stage: staged,
    };
    const client = answeringClient({
      get: async (_kind, name) => cluster.rendered.get(name),
      find: async () => cluster.machineConfiguration,
    });
    return {
      client,
      ports: {
        host: { root: this.#root },
        backend: backend as OsBackend,
        wrongLabels: noWrongLabels,
      },
      spec: this.#spec,
      current: this.#current,
      stuck: undefined,
      admit: async () => undefined,
      runningArguments: undefined,
      onProgress: () => undefined,
      held: neverHeld,
      signal,
    };
  }

  async #labelsOf(image: string): Promise<Readonly<Record<string, string>>> {
    const { registry, signal } = this.#parts;
    const { config } = await describeImage(registry, parseReference(image), ARCHITECTURE, signal);
    return config.config?.Labels ?? {};
  }
}
