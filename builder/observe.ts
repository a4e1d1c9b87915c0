import type { Logger } from 'pino';
import { ConfigMaps } from '../api/kubernetes.ts';
import { MachineConfigs } from '../api/machine-config.ts';
import { type MachineConfigNode, MachineConfigNodes } from '../api/machine-config-node.ts';
import { MachineConfigPools } from '../api/machine-config-pool.ts';
import { MachineConfigurations } from '../api/machine-configuration.ts';
import { MachineOSBuilds } from '../api/machine-os-build.ts';
import { type MachineOSConfig, MachineOSConfigs } from '../api/machine-os-config.ts';
import { SIGNING_KEYS_CONFIG_MAP } from '../api/names.ts';
import { repositoryOf } from '../api/references.ts';
import type { ApiClient } from '../cluster/api-client.ts';
import { createInformer } from '../cluster/informer.ts';
import type { WorkQueue } from '../cluster/work-queue.ts';
import { formatReference, parseReference, type Reference } from '../image/reference.ts';

/**
 * What the builder watches, one watch per kind.
 *
 * @param namespace where Shale runs.
 */
export function createBuildCaches(client: ApiClient, log: Logger, namespace: string) {
  const signingKeys = { namespace, fieldSelector: `metadata.name=${SIGNING_KEYS_CONFIG_MAP}` };
  return {
    machineOSConfigs: createInformer(client, MachineOSConfigs, { log }),
    builds: createInformer(client, MachineOSBuilds, { log }),
    pools: createInformer(client, MachineConfigPools, { log }),
    machineConfigs: createInformer(client, MachineConfigs, { log }),
    machineConfigurations: createInformer(client, MachineConfigurations, { log }),
    nodes: createInformer(client, MachineConfigNodes, { log }),
    signingKeys: createInformer(client, ConfigMaps, { ...signingKeys, log }),
  } as const;
}

export type BuildCaches = ReturnType<typeof createBuildCaches>;

/** Enqueues the names of the MachineOSConfigs that a change concerns. */
export function enqueueOnChange(caches: BuildCaches, queue: WorkQueue): void {
  const addWhere = (isConcerned: (config: MachineOSConfig) => boolean) => {
    for (const config of caches.machineOSConfigs.list().filter(isConcerned)) queue.add(config.metadata.name);
  };
  // The builder itself writes the status. A look at once would replace the pause before a failed look-up is repeated.
  caches.machineOSConfigs.onChange((change) => {
    const { object } = change;
    const isOwn = change.type === 'MODIFIED' && change.old && requestOf(change.old) === requestOf(object);
    if (isOwn === true) return;
    queue.add(object.metadata.name);
    // Whose repository it is may have changed with it.
    const named = new Set(
      [object, ...(change.type === 'MODIFIED' && change.old ? [change.old] : [])].map(repositoryOfConfig),
    );
    addWhere(
      (config) => config.metadata.name !== object.metadata.name && named.has(repositoryOfConfig(config)),
    );
  });
  caches.builds.onChange(({ object }) => queue.add(object.spec.machineOSConfig.name));
  caches.pools.onChange(({ object }) =>
    addWhere(({ spec }) => spec.machineConfigPool.name === object.metadata.name),
  );
  caches.machineConfigs.onChange(({ object }) =>
    addWhere(({ spec }) => renderedConfigOf(caches, spec.machineConfigPool.name) === object.metadata.name),
  );
  // What a node runs decides whether the label of its pool's image suffices.
  caches.nodes.onChange(({ object, old }) => {
    if (old !== undefined && runs(old) === runs(object)) return;
    addWhere(({ spec }) => spec.machineConfigPool.name === object.spec.pool.name);
  });
  caches.machineConfigurations.onChange(() => addWhere(() => true));
  caches.signingKeys.onChange(() => addWhere(() => true));
}

function repositoryOfConfig({ spec }: MachineOSConfig): string {
  return repositoryOf(spec.renderedImagePushSpec);
}

/** @returns what a MachineOSConfig requests, as text. */
function requestOf({ metadata, spec }: MachineOSConfig): string {
  const { uid, annotations, labels, deletionTimestamp } = metadata;
  return JSON.stringify([uid, annotations, labels, deletionTimestamp, spec]);
}

/** @returns what a node of a pool runs, as text: the label of the pool's image is decided by no more of a node. */
function runs({ spec, status }: MachineConfigNode): string {
  return JSON.stringify([spec.pool.name, status?.mode, status?.configVersion?.current, status?.baseImage]);
}

/** @returns the name of the rendered config that is the pool's target; undefined before the first rendering. */
export function renderedConfigOf({ pools }: BuildCaches, pool: string): string | undefined {
  return pools.get(pool)?.spec.configuration?.name;
}

/** @returns whether the image behind a base image's name can change: a name without a digest. */
export function isMovable(requested: string): boolean {
  return parseReference(requested).digest === undefined;
}

export interface BaseImagesOptions {
  /** ms for which a digest that was looked up is used without another look-up. */
  readonly freshMs: number;
  /** ms of a monotonic clock. */
  readonly now: () => number;
  /** Called when a tag can't be looked up again and the earlier digest stays in use. */
  readonly onStale: (requested: string, error: unknown) => void;
}

/** Resolves the tags of base images to digests, and remembers them for a while. */
export class BaseImages {
  readonly #options: BaseImagesOptions;
  readonly #resolved = new Map<string, { readonly digest: string; readonly at: number }>();

  constructor(options: BaseImagesOptions) {
    this.#options = options;
  }

  /**
   * @param requested by tag or digest.
   * @returns the same image by digest. Once the remembered digest is too old the tag is looked up again; if that fails,
   *   the remembered digest is used.
   * @throws what the look-up throws, for a tag that was never resolved.
   */
  async resolve(requested: string, lookUp: (reference: Reference) => Promise<string>): Promise<string> {
    const { freshMs, now, onStale } = this.#options;
    const reference = parseReference(requested);
    if (reference.digest !== undefined) return requested;
    const before = this.#resolved.get(requested);
    if (before !== undefined && now() - before.at < freshMs) return pinned(reference, before.digest);
    try {
      const digest = await lookUp(reference);
      this.#resolved.set(requested, { digest, at: now() });
      return pinned(reference, digest);
    } catch (error) {
      if (before === undefined) throw error;
      onStale(requested, error);
      return pinned(reference, before.digest);
    }
  }
}

/** The tag stays in the reference, for people to recognize the image. */
function pinned(reference: Reference, digest: string): string {
  return `${formatReference(reference)}@${digest}`;
}
