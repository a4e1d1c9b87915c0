import type { Logger } from 'pino';
import { type DisruptionAction, type DisruptionCause, formatActions } from '../../api/disruption-action.ts';
import type { ClusterPolicies } from '../../api/disruption-policy.ts';
import {
  ImageContentSourcePolicies,
  ImageDigestMirrorSets,
  ImageTagMirrorSets,
} from '../../api/image-sources.ts';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { annotations, MACHINE_CONFIGURATION } from '../../api/names.ts';
import type { Kind } from '../../api/object.ts';
import { by } from '../../api/order.ts';
import { plural } from '../../api/plural.ts';
import { isByDigest, withoutTag } from '../../api/references.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { changeField } from '../../cluster/events.ts';
import { updateAnnotation } from '../../cluster/update-object.ts';
import { effectivePolicies } from '../../disruption/effective-policies.ts';
import { policiesOfPool } from '../../disruption/pool-policies.ts';
import { predictTransitions } from '../../disruption/transitions.ts';
import type { NodeConfig } from '../../machineconfig/node-config.ts';
import { parseNodeConfig } from '../../machineconfig/parse-node-config.ts';
import type { Caches } from '../../rollout/caches.ts';
import type { RolloutOptions } from '../../rollout/options.ts';
import { formatEffects, type MirrorObject, mirrorEffect } from './mirror-effects.ts';

/** What a rendering will require of the nodes that run one config now. */
export interface RenderingTransition {
  /** Name of the rendered config that they run. */
  readonly from: string;
  /** How many nodes of the pool run it. */
  readonly nodes: number;
  readonly actions: readonly DisruptionAction[];
  readonly causes: readonly DisruptionCause[];
  /** It reboots only if the base image's new name stands for another image, which is not known before the build. */
  readonly dependsOnBase?: true;
}

export interface PredictionInput {
  /** Names of the configs that the pool's nodes run, one for each node; undefined for a node that has not reported it. */
  readonly running: readonly (string | undefined)[];
  readonly configs: (name: string) => MachineConfig | undefined;
  readonly to: MachineConfig;
  readonly policies: ClusterPolicies;
  /** Whether the nodes run images. */
  readonly layered: boolean;
}

/**
 * Predicts what a rendering will require of a pool's nodes, before any of them is changed.
 *
 * @returns a transition for each config that nodes run and that can still be compared, most nodes first.
 */
export function predictForNodes({
  running,
  configs,
  to,
  policies,
  layered,
}: PredictionInput): readonly RenderingTransition[] {
  const target = readableNodeConfig(to);
  if (target === undefined) return [];
  const names = running.filter((name) => name !== undefined);
  const parsed = new Map(
    [...new Set(names)].map((name) => [
      name,
      name === target.name ? target : readableNodeConfig(configs(name)),
    ]),
  );
  const byConfig = Map.groupBy(names, (name) => parsed.get(name));
  return [...byConfig]
    .flatMap(([config, { length }]) =>
      config === undefined ? [] : predictFrom(config, { nodes: length, to: target, policies, layered }),
    )
    .sort(
      by(
        ({ nodes }) => -nodes,
        ({ from }) => from,
      ),
    );
}

/**
 * Which base image an image will have is not known before it is built, where it is named by tag. So base images are left out,
 * unless both names have the same digest.
 */
function predictFrom(
  config: NodeConfig,
  { nodes, to, ...how }: { nodes: number; to: NodeConfig } & Pick<PredictionInput, 'policies' | 'layered'>,
): RenderingTransition[] {
  const [was, will] = [config.osImageURL, to.osImageURL].map(withoutTag);
  const areByDigest = [was, will].every((name = '') => isByDigest(name));
  const base = areByDigest && was === will && will !== undefined ? will : '';
  const isUnknown = was !== '' && will !== '' && config.osImageURL !== to.osImageURL && !areByDigest;
  return predictTransitions({ froms: [{ config, base }], to: { config: to, base }, ...how }).map(
    ({ config: from, actions, causes }) => {
      if (!isUnknown) return { from, nodes, actions, causes };
      const others = causes.filter(({ subject, kind }) => !(kind === 'field' && subject === 'osImageURL'));
      const isOnly = !others.some((cause) => cause.actions.some(({ type }) => type === 'Reboot'));
      return {
        from,
        nodes,
        actions,
        causes: causes.map((cause) => (others.includes(cause) ? cause : { ...cause, rule: UNKNOWN_BASE })),
        ...(isOnly ? { dependsOnBase: true as const } : {}),
      };
    },
  );
}

const UNKNOWN_BASE =
  'osImageURL takes effect at boot, unless both names stand for the same digest, which is not known before the build: Reboot';

/** @returns undefined for a config that is gone or can't be read: its nodes reboot. */
export function readableNodeConfig(config: MachineConfig | undefined): NodeConfig | undefined {
  const parsed = config === undefined ? undefined : parseNodeConfig(config);
  return parsed?.ok === true ? parsed.config : undefined;
}

/** Bytes: an object's annotations together may have 256 KiB (apimachinery, TotalAnnotationSizeLimitB). */
const MAX_BYTES = 16 * 1024;

const UNLESS = ', unless the base image has the same digest under its new name';

/**
 * @returns the annotation of a rendered config: JSON, the summary first; without causes where they are too many, and
 *   without transitions where even these are.
 */
export function formatPredicted(transitions: readonly RenderingTransition[]): string {
  const summary = transitions.map(
    ({ nodes, actions, dependsOnBase }) =>
      `${plural(nodes, 'node')}: ${formatActions(actions)}${dependsOnBase === true ? UNLESS : ''}`,
  );
  const first = { summary: summary.length === 0 ? 'no node runs anything yet' : summary.join('; ') };
  const short = transitions.map(({ from, nodes, actions }) => ({
    from,
    nodes,
    actions: formatActions(actions),
  }));
  const whole = transitions.map(({ causes }, index) => ({
    ...short[index],
    causes: causes.map(({ subject, change, rule }) => ({ subject, change, rule })),
  }));
  const candidates = [
    { ...first, transitions: whole },
    { ...first, transitions: short },
  ];
  const fitting = candidates
    .map((candidate) => JSON.stringify(candidate))
    .find((text) => Buffer.byteLength(text) <= MAX_BYTES);
  return fitting ?? JSON.stringify({ summary: first.summary.slice(0, MAX_BYTES / 2) });
}

export interface PredictionsParts {
  readonly client: ApiClient;
  readonly caches: Caches;
  readonly log: Logger;
  readonly options: RolloutOptions;
}

/** Predicts what a rendering will require of nodes, and records it on the rendered config and on the mirror objects that contribute to it. */
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
      policies: policiesOfPool(status, pool.metadata.name)?.policies ?? effectivePolicies(undefined, options),
    });
  }

  /**
   * Records the prediction where it differs from what is recorded: a config that was rendered earlier has the prediction of
   * that time.
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
        const next = (before: string | undefined) => formatEffects(before, pool.metadata.name, effect);
        await updateAnnotation(client, kind, object, annotations.effect, next, { signal });
      }
    };
    await write(ImageContentSourcePolicies, caches.contentSources.list());
    await write(ImageDigestMirrorSets, caches.digestMirrors.list());
    await write(ImageTagMirrorSets, caches.tagMirrors.list());
  }
}

/** @returns the rendered config with its predicted transitions, so that both are one write. */
export function withPredicted(
  rendered: MachineConfig,
  transitions: readonly RenderingTransition[],
): MachineConfig {
  const { metadata } = rendered;
  const annotated = { ...metadata.annotations, [annotations.transitions]: formatPredicted(transitions) };
  return { ...rendered, metadata: { ...metadata, annotations: annotated } };
}
