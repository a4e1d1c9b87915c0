import type { Logger } from 'pino';
import {
  ImageContentSourcePolicies,
  ImageDigestMirrorSets,
  ImageTagMirrorSets,
} from '../../api/image-mirrors.ts';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { annotations, MACHINE_CONFIGURATION } from '../../api/names.ts';
import type { Kind } from '../../api/object.ts';
import { changeField } from '../../cluster/about-change.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { updateAnnotation } from '../../cluster/update-annotation.ts';
import { effectivePolicies } from '../../disruption/effective-policies.ts';
import type { Caches } from '../caches.ts';
import type { RolloutOptions } from '../options.ts';
import { type ForeseenTransition, foresee, formatForeseen, nodeConfigOf } from './predicted-transitions.ts';
import { formatEffects, type MirrorObject, mirrorEffect } from './mirror-effects.ts';

export interface ForesightParts {
  readonly client: ApiClient;
  readonly caches: Caches;
  readonly log: Logger;
  readonly options: RolloutOptions;
}

/** Works out what a rendering will ask of nodes, and writes it down: on the rendered config, and on the mirror objects that have a part in it. */
export class Foresight {
  readonly #parts: ForesightParts;

  constructor(parts: ForesightParts) {
    this.#parts = parts;
  }

  /** @returns what the rendering will ask of the nodes of the pool as they are now. */
  of(pool: MachineConfigPool, rendered: MachineConfig): readonly ForeseenTransition[] {
    const { caches, options } = this.#parts;
    const status = caches.machineConfigurations.get(MACHINE_CONFIGURATION)?.status;
    return foresee({
      running: caches.machineConfigNodes
        .list()
        .filter(({ spec }) => spec.pool.name === pool.metadata.name)
        .map((node) => node.status?.configVersion?.current),
      configs: (config) => caches.machineConfigs.get(config),
      to: rendered,
      policies: status?.nodeDisruptionPolicyStatus?.clusterPolicies ?? effectivePolicies(undefined, options),
    });
  }

  /**
   * Tells it where it is not told yet: a config that was rendered earlier says what it asked of nodes then.
   *
   * @throws ApiError
   */
  async tell(
    pool: MachineConfigPool,
    rendered: MachineConfig,
    transitions: readonly ForeseenTransition[],
    signal: AbortSignal,
  ): Promise<void> {
    const { client, caches, log } = this.#parts;
    const { name } = rendered.metadata;
    const text = formatForeseen(transitions);
    if (caches.machineConfigs.get(name)?.metadata.annotations?.[annotations.transitions] !== text) {
      const body = { metadata: { annotations: { [annotations.transitions]: text } } };
      caches.machineConfigs.remember(
        await client.patch(MachineConfigs, name, { type: 'merge', body }, { signal }),
      );
    }
    log.info(
      { pool: pool.metadata.name, config: name, ...changeField(name), transitions: transitions.length },
      'what it will ask of nodes is written',
    );
    // The most nodes come from the first; what the others make of it says the rendered config.
    const [first] = transitions;
    if (first !== undefined) await this.#tellMirrors(pool, rendered, first, signal);
  }

  async #tellMirrors(
    pool: MachineConfigPool,
    rendered: MachineConfig,
    transition: ForeseenTransition,
    signal: AbortSignal,
  ): Promise<void> {
    const { client, caches } = this.#parts;
    const from = nodeConfigOf(caches.machineConfigs.get(transition.from));
    const to = nodeConfigOf(rendered);
    if (from === undefined || to === undefined) return;
    const write = async <T extends MirrorObject>(kind: Kind<T>, objects: readonly T[]) => {
      for (const object of objects) {
        const effect = mirrorEffect({ ...object, kind: kind.kind }, from, to, transition);
        if (effect === undefined) continue;
        // Other pools are rendered at the same time, and each writes its own part.
        const next = (before: string | undefined) => formatEffects(before, pool.metadata.name, effect);
        await updateAnnotation(client, kind, object, annotations.effect, next, { signal });
      }
    };
    await write(ImageContentSourcePolicies, caches.contentSources.list());
    await write(ImageDigestMirrorSets, caches.digestMirrors.list());
    await write(ImageTagMirrorSets, caches.tagMirrors.list());
  }
}

/** @returns the rendered config with what it will ask of nodes, in one write with itself. */
export function withForeseen(
  rendered: MachineConfig,
  transitions: readonly ForeseenTransition[],
): MachineConfig {
  const { metadata } = rendered;
  const told = { ...metadata.annotations, [annotations.transitions]: formatForeseen(transitions) };
  return { ...rendered, metadata: { ...metadata, annotations: told } };
}
