import type { ClusterPolicies } from '../api/disruption-policy.ts';
import type { MachineConfig } from '../api/machine-config.ts';
import type { MachineConfigNode } from '../api/machine-config-node.ts';
import type { MachineOSBuild } from '../api/machine-os-build.ts';
import { byCodeUnits } from '../api/order.ts';
import { parseNodeConfig } from '../machineconfig/parse-node-config.ts';
import { decideActions } from './actions.ts';
import { formatNodeState } from './transitions.ts';

/**
 * Whether the label of an image states what every node of its pool will do. Builder and operator both decide by this
 * function (docs/decisions/0009-relabelling.md).
 */

export interface LabelCoverageInput {
  /** A build that succeeded. */
  readonly build: MachineOSBuild;
  /** The nodes of its pool. */
  readonly nodes: Iterable<MachineConfigNode>;
  readonly configs: (name: string) => MachineConfig | undefined;
  /** The policies in force. */
  readonly policies: ClusterPolicies;
  /**
   * Their digest; a label that was computed with other policies lists nothing. Absent: whatever the label was computed
   * with.
   */
  readonly policyDigest?: string | undefined;
}

/**
 * @returns the rendered configs that nodes run, on the base of the image, for which its label has no transition
 *   although one would cost less than a reboot; sorted. A node on another base image, in standard mode, or with a
 *   config that can't be compared reboots in any case.
 */
export function unlistedConfigs({
  build,
  nodes,
  configs,
  policies,
  policyDigest = build.spec.policyDigest,
}: LabelCoverageInput): readonly string[] {
  const target = build.spec.machineConfig.name;
  const bases = baseImagesOf(build);
  const isStale = build.spec.policyDigest !== undefined && build.spec.policyDigest !== policyDigest;
  const listed = isStale ? new Set() : listedStates(build);
  const unlisted = new Map<string, string>();
  for (const { status } of nodes) {
    const config = status?.configVersion?.current;
    const base = status?.baseImage;
    if (status?.mode !== 'Layered' || config === undefined || base === undefined) continue;
    if (config !== target && bases.has(base) && !listed.has(formatNodeState({ config, base })))
      unlisted.set(config, base);
  }
  return [...unlisted]
    .filter(([config, base]) => costsLessThanReboot(configs(config), configs(target), base, policies))
    .map(([config]) => config)
    .sort(byCodeUnits);
}

/** @returns the base images of a build's image: an index has one for each architecture. */
export function baseImagesOf({ status }: MachineOSBuild): ReadonlySet<string | undefined> {
  return new Set([status?.baseImage, ...(status?.instances ?? []).map(({ baseImage }) => baseImage)]);
}

/** Builds of older versions state in their status alone what their label lists. */
function listedStates({ spec, status }: MachineOSBuild): ReadonlySet<string> {
  return new Set(spec.transitionsFrom?.map(formatNodeState) ?? status?.transitions?.map(({ from }) => from));
}

function costsLessThanReboot(
  from: MachineConfig | undefined,
  to: MachineConfig | undefined,
  base: string,
  policies: ClusterPolicies,
): boolean {
  if (from === undefined || to === undefined) return false;
  const [before, after] = [parseNodeConfig(from), parseNodeConfig(to)];
  if (!before.ok || !after.ok) return false;
  const bases = { fromBase: base, toBase: base };
  const configs = { from: before.config, to: after.config };
  const { actions } = decideActions({ ...configs, policies, layered: true, ...bases });
  return actions.every(({ type }) => type !== 'Reboot');
}
