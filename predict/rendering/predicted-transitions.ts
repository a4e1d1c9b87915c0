import { type DisruptionAction, type DisruptionCause, formatActions } from '../../api/disruption-action.ts';
import type { ClusterPolicies } from '../../api/disruption-policy.ts';
import type { MachineConfig } from '../../api/machine-config.ts';
import { annotations } from '../../api/names.ts';
import { by } from '../../api/order.ts';
import { plural } from '../../api/plural.ts';
import { isByDigest, withoutTag } from '../../api/references.ts';
import { predictTransitions } from '../../disruption/transitions.ts';
import type { NodeConfig } from '../../machineconfig/node-config.ts';
import { readableNodeConfig } from '../objects/cluster-state.ts';

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
  /**
   * Names of the configs that the pool's nodes run, one for each node; undefined for a node that has not reported it.
   */
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
 * Which base image an image will have is not known before it is built, where it is named by tag. So base images are
 * left out, unless both names have the same digest.
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

/** @returns the rendered config with its predicted transitions, so that both are one write. */
export function withPredicted(
  rendered: MachineConfig,
  transitions: readonly RenderingTransition[],
): MachineConfig {
  const { metadata } = rendered;
  const annotated = { ...metadata.annotations, [annotations.transitions]: formatPredicted(transitions) };
  return { ...rendered, metadata: { ...metadata, annotations: annotated } };
}
