import type { Deployment } from '../api/kubernetes.ts';
import type { MachineConfigNode } from '../api/machine-config-node.ts';
import type { MachineConfigPool } from '../api/machine-config-pool.ts';
import type { MachineOSBuild } from '../api/machine-os-build.ts';
import type { MachineOSConfig } from '../api/machine-os-config.ts';
import type { NewObject } from '../api/object.ts';
import { plural } from '../api/plural.ts';
import { decideRights, type ObservedRight, type RightChange } from './builder-rights.ts';
import { decidePrune, isUsed, type PrunedBuild } from './decide-prune.ts';
import { decideMachineOSConfigs, type MachineOSConfigChanges, madeBySwitch } from './machine-os-configs.ts';
import type { SwitchState } from './switch.ts';

/** Everything that the state of layering on a cluster consists of. */
export interface LayeringObservation {
  readonly state: SwitchState;
  readonly pools: readonly MachineConfigPool[];
  readonly machineOSConfigs: readonly MachineOSConfig[];
  readonly builds: readonly MachineOSBuild[];
  readonly nodes: readonly MachineConfigNode[];
  readonly builder: Deployment | undefined;
  /** What it should be. */
  readonly desiredBuilder: NewObject<Deployment>;
  /** What gives the builder's pods an identity and rights. */
  readonly rights: readonly ObservedRight[];
  /** How many pods of the builder there are, those on their way out included. */
  readonly builderPods: number;
  /** How many finished builds a pool keeps beyond what is used. */
  readonly keepImages: number;
}

/** The next thing to do; after it the cluster is observed again. */
export type LayeringStep =
  | { readonly kind: 'startBuilder' }
  | { readonly kind: 'updateBuilder' }
  | { readonly kind: 'stopBuilder' }
  | { readonly kind: 'changeRights'; readonly changes: readonly RightChange[] }
  | { readonly kind: 'changeMachineOSConfigs'; readonly changes: MachineOSConfigChanges }
  | { readonly kind: 'prune'; readonly builds: readonly PrunedBuild[] }
  | { readonly kind: 'wait'; readonly why: string }
  | { readonly kind: 'settled' };

/**
 * Decides the next step towards what the switch says.
 *
 * On: the builder's rights, MachineOSConfigs, then the builder. Off: the builder first, so that no image is born while
 * nodes leave; then its rights, which it needs until it has ended; then the switch's MachineOSConfigs, which sends nodes back to the stock image; and only when no node runs or is meant to run an
 * image is that image deleted. The order holds from any state in between, so that a switch flipped half way, or an
 * operator killed half way, ends where the last setting says.
 */
export function decideLayering(observation: LayeringObservation): LayeringStep {
  const changes = decideMachineOSConfigs(observation.state, observation.pools, observation.machineOSConfigs);
  const builderNeeded = isBuilderNeeded(observation);
  if (!builderNeeded && observation.builder !== undefined) return { kind: 'stopBuilder' };
  if (!builderNeeded && observation.builderPods > 0)
    return { kind: 'wait', why: 'the Machine OS Builder is stopping' };
  const rights = decideRights(observation.rights, builderNeeded);
  if (rights.length > 0) return { kind: 'changeRights', changes: rights };
  if (changes.create.length + changes.replace.length + changes.delete.length > 0) {
    return { kind: 'changeMachineOSConfigs', changes };
  }
  if (builderNeeded && observation.builder === undefined) return { kind: 'startBuilder' };
  if (observation.builder !== undefined && isOutdated(observation.builder, observation.desiredBuilder))
    return { kind: 'updateBuilder' };
  const pruned = decidePrune({ ...observation, keep: observation.keepImages });
  if (pruned.length > 0) return { kind: 'prune', builds: pruned };
  const waiting = orphanedBuilds(observation).filter((build) => isUsed(build, observation.nodes));
  if (waiting.length === 0) return { kind: 'settled' };
  return {
    kind: 'wait',
    why: `nodes that are returning to the stock image still run ${plural(waiting.length, 'image')}`,
  };
}

/** What the API server fills in is not ours to compare. */
function isOutdated(builder: Deployment, desired: NewObject<Deployment>): boolean {
  const essence = ({ spec }: Pick<Deployment, 'spec'>) =>
    JSON.stringify([
      spec.replicas ?? 1,
      spec.template.spec.containers.map(({ name, image, command, args }) => [name, image, command, args]),
    ]);
  return essence(builder) !== essence(desired);
}

/** The builder serves the switch and every MachineOSConfig that an admin made by hand. */
function isBuilderNeeded({ state, machineOSConfigs }: LayeringObservation): boolean {
  switch (state.kind) {
    case 'on':
      return true;
    case 'off':
      return machineOSConfigs.some((config) => !madeBySwitch(config));
    case 'invalid':
      return machineOSConfigs.length > 0;
  }
}

function orphanedBuilds({ builds, machineOSConfigs }: LayeringObservation): MachineOSBuild[] {
  const configs = new Set(machineOSConfigs.map((config) => config.metadata.name));
  return builds.filter((build) => !configs.has(build.spec.machineOSConfig.name));
}
