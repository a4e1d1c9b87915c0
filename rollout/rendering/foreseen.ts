import { type DisruptionAction, type DisruptionCause, formatActions } from '../../api/disruption-action.ts';
import type { MachineConfig } from '../../api/machine-config.ts';
import type { ClusterPolicies } from '../../api/machine-configuration.ts';
import { decideActions } from '../../disruption/actions.ts';
import type { PolicySettings } from '../../disruption/default-policies.ts';
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
  readonly settings: PolicySettings;
}

/**
 * Works out what a rendering will ask of a pool's nodes, before any of them is touched.
 *
 * @returns a transition for each config that nodes run and that can still be compared, most nodes first.
 */
export function foresee({
  running,
  configs,
  to,
  policies,
  settings,
}: ForeseenInput): readonly ForeseenTransition[] {
  const target = nodeConfigOf(to);
  if (target === undefined) return [];
  const counts = new Map<string, number>();
  for (const name of running) if (name !== undefined) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts]
    .flatMap(([from, nodes]): ForeseenTransition[] => {
      const config = from === target.name ? target : nodeConfigOf(configs(from));
      if (config === undefined) return [];
      return [{ from, nodes, ...decideActions({ from: config, to: target, policies, settings }) }];
    })
    .sort((a, b) => b.nodes - a.nodes || (a.from < b.from ? -1 : 1));
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
