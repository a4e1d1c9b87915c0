import { outcomeOf } from '../../api/build-outcome.ts';
import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import { by } from '../../api/order.ts';

/** A rendered config with the base image it is based on: what a node runs, or soon will. */
export interface KnownState {
  readonly config: MachineConfig;
  /** By digest. */
  readonly base: string;
  /** Architecture of the base as GOARCH; absent if unknown. */
  readonly architecture?: string | undefined;
}

/**
 * The states whose transitions a new image's label should list: what the pool's nodes report, and what nodes that are
 * being updated to its earlier images will run. From any other state the transition is a reboot.
 *
 * @param configs rendered configs by name; a state whose config is gone can't be compared with anything.
 * @returns each state once, in order of its names.
 */
export function knownStates(
  pool: string,
  nodes: readonly MachineConfigNode[],
  builds: readonly MachineOSBuild[],
  configs: (name: string) => MachineConfig | undefined,
): readonly KnownState[] {
  const reported = nodes
    .filter(({ spec }) => spec.pool.name === pool)
    .map(({ status }) => ({ name: status?.configVersion?.current, base: status?.baseImage }));
  const built = builds.filter((build) => outcomeOf(build) === 'Succeeded').flatMap(statesOf);
  const architectures = new Map(built.map(({ base, architecture }) => [base, architecture]));
  const states = new Map<string, KnownState>();
  for (const { name, base } of [...reported, ...built]) {
    const config = name === undefined ? undefined : configs(name);
    if (config === undefined || base === undefined) continue;
    const architecture = architectures.get(base);
    states.set(`${name} ${base}`, { config, base, architecture });
  }
  return [...states].sort(by(([key]) => key)).map(([, state]) => state);
}

interface BuiltState {
  readonly name: string;
  readonly base: string | undefined;
  readonly architecture: string | undefined;
}

/** An image for several architectures is based on one image for each. */
function statesOf({ spec, status }: MachineOSBuild): readonly BuiltState[] {
  const { name } = spec.machineConfig;
  const { instances, baseImage } = status ?? {};
  return instances === undefined
    ? [{ name, base: baseImage, architecture: undefined }]
    : instances.map(({ baseImage: base, architecture }) => ({ name, base, architecture }));
}
