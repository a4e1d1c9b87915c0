import { type DisruptionAction, type DisruptionCause, formatActions } from '../../api/disruption-action.ts';
import type { MachineConfig } from '../../api/machine-config.ts';
import type { ClusterPolicies } from '../../api/machine-configuration.ts';
import { by } from '../../api/order.ts';
import { predictTransitions } from '../../disruption/transitions.ts';
import type { NodeConfig } from '../../machineconfig/node-config.ts';
import { parseNodeConfig } from '../../machineconfig/parse-node-config.ts';

/** What a rendering will ask of the nodes that run one config now. */
export interface ForeseenTransition {
  /** Name of the rendered config that they run. */
  readonly from: string;
  /** How many nodes of the pool run it. */
  readonly nodes: number;
  readonly actions: readonly DisruptionAction[];
  readonly causes: readonly DisruptionCause[];
}

export interface ForeseenInput {
  /** Names of the configs that the pool's nodes run, one for each node; undefined for a node that has not said. */
  readonly running: readonly (string | undefined)[];
  readonly configs: (name: string) => MachineConfig | undefined;
  readonly to: MachineConfig;
  readonly policies: ClusterPolicies;
}

/**
 * Works out what a rendering will ask of a pool's nodes, before any of them is touched.
 *
 * @returns a transition for each config that nodes run and that can still be compared, most nodes first.
 */
export function foresee({ running, configs, to, policies }: ForeseenInput): readonly ForeseenTransition[] {
  const target = nodeConfigOf(to);
  if (target === undefined) return [];
  const names = running.filter((name) => name !== undefined);
  const parsed = new Map(
    [...new Set(names)].map((name) => [name, name === target.name ? target : nodeConfigOf(configs(name))]),
  );
  // Base images are left out: which one an image will have is not known before it is built.
  const base = '';
  const froms = names.flatMap((name) => {
    const config = parsed.get(name);
    return config === undefined ? [] : [{ config, base }];
  });
  return predictTransitions({ froms, to: { config: target, base }, policies })
    .map(({ config: from, nodes, actions, causes }) => ({ from, nodes, actions, causes }))
    .sort(
      by(
        ({ nodes }) => -nodes,
        ({ from }) => from,
      ),
    );
}

/** @returns undefined for a config that is gone or can't be read: its nodes reboot. */
export function nodeConfigOf(config: MachineConfig | undefined): NodeConfig | undefined {
  const parsed = config === undefined ? undefined : parseNodeConfig(config);
  return parsed?.ok === true ? parsed.config : undefined;
}

/** Bytes: an object's annotations together may have 256 KiB (apimachinery, TotalAnnotationSizeLimitB). */
const MAX_BYTES = 16 * 1024;

/**
 * @returns the annotation of a rendered config: JSON, the summary first; without causes where they are too many, and
 *   without transitions where even these are.
 */
export function formatForeseen(transitions: readonly ForeseenTransition[]): string {
  const summary = transitions.map(
    ({ nodes, actions }) => `${nodes} ${nodes === 1 ? 'node' : 'nodes'}: ${formatActions(actions)}`,
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
