import type { Logger } from 'pino';
import {
  ImageContentSourcePolicies,
  ImageDigestMirrorSets,
  ImageTagMirrorSets,
} from '../../api/image-sources.ts';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { annotations, MACHINE_CONFIGURATION } from '../../api/names.ts';
import type { Kind } from '../../api/object.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { changeField } from '../../cluster/events.ts';
import { updateAnnotation } from '../../cluster/update-object.ts';
import { effectivePolicies } from '../../disruption/effective-policies.ts';
import { policiesOfPool } from '../../disruption/pool-policies.ts';
import { readableNodeConfig } from '../../predict/objects/cluster-state.ts';
import { formatEffects, type MirrorObject, mirrorEffect } from '../../predict/rendering/mirror-effects.ts';
import {
  formatPredicted,
  predictForNodes,
  type RenderingTransition,
} from '../../predict/rendering/predicted-transitions.ts';
import type { Caches, ImageSourceCaches } from '../caches.ts';
import type { RolloutOptions } from '../options.ts';

export interface PredictionsParts {
  readonly client: ApiClient;
  readonly caches: ImageSourceCaches &
    Pick<Caches, 'machineConfigs' | 'machineConfigNodes' | 'machineConfigurations'>;
  readonly log: Logger;
  readonly options: Pick<RolloutOptions, 'hosts'>;
}

/**
 * Predicts what a rendering will require of nodes, and records it on the rendered config and on the mirror objects that
 * contribute to it.
 */
export class Predictions {
  readonly #parts: PredictionsParts;

  constructor(parts: PredictionsParts) {
    this.#parts = parts;
  }

  /** @returns what the rendering will require of the nodes of the pool as they are now. */
  of(pool: MachineConfigPool, rendered: MachineConfig): readonly RenderingTransition[] {
    const { caches, options } = this.#parts;
    const status = caches.machineConfigurations.get(MACHINE_CONFIGURATION)?.status;
    const nodes = caches.machineConfigNodes
      .list()
      .filter(({ spec }) => spec.pool.name === pool.metadata.name);
    return predictForNodes({
      running: nodes.map((node) => node.status?.configVersion?.current),
      layered: nodes.some(({ status }) => status?.mode === 'Layered'),
      configs: (config) => caches.machineConfigs.get(config),
      to: rendered,
      policies:
        policiesOfPool(status, pool.metadata.name)?.policies ?? effectivePolicies(undefined, options.hosts),
    });
  }

  /**
   * Records the prediction where it differs from what is recorded: a config that was rendered earlier has the
   * prediction of that time.
   *
   * @throws ApiError
   */
  async record(
    pool: MachineConfigPool,
    rendered: MachineConfig,
    transitions: readonly RenderingTransition[],
    signal: AbortSignal,
  ): Promise<void> {
    const { client, caches, log } = this.#parts;
    const { name } = rendered.metadata;
    const text = formatPredicted(transitions);
    if (caches.machineConfigs.get(name)?.metadata.annotations?.[annotations.transitions] !== text) {
      const body = { metadata: { annotations: { [annotations.transitions]: text } } };
      caches.machineConfigs.remember(
        await client.patch(MachineConfigs, name, { type: 'merge', body }, { signal }),
      );
    }
    log.info(
      { pool: pool.metadata.name, config: name, ...changeField(name), transitions: transitions.length },
      'recorded the predicted transitions',
    );
    // Most nodes are in the first; the rendered config has the others.
    const [first] = transitions;
    if (first !== undefined) await this.#recordMirrors(pool, rendered, first, signal);
  }

  async #recordMirrors(
    pool: MachineConfigPool,
    rendered: MachineConfig,
    transition: RenderingTransition,
    signal: AbortSignal,
  ): Promise<void> {
    const { client, caches } = this.#parts;
    const from = readableNodeConfig(caches.machineConfigs.get(transition.from));
    const to = readableNodeConfig(rendered);
    if (from === undefined || to === undefined) return;
    const write = async <T extends MirrorObject>(kind: Kind<T>, objects: readonly T[]) => {
      for (const object of objects) {
        const effect = mirrorEffect({ ...object, kind: kind.kind }, from, to, transition);
        if (effect === undefined) continue;
        // Other pools are rendered at the same time, and each writes its own entry.
        const compute = (before: string | undefined) => formatEffects(before, pool.metadata.name, effect);
        await updateAnnotation(client, kind, object, { name: annotations.effect, compute }, { signal });
      }
    };
    await write(ImageContentSourcePolicies, caches.contentSources.list());
    await write(ImageDigestMirrorSets, caches.digestMirrors.list());
    await write(ImageTagMirrorSets, caches.tagMirrors.list());
  }
}
