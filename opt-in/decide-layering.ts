import type { Deployment } from '../api/kubernetes.ts';
import type { MachineConfigNode } from '../api/machine-config-node.ts';
import type { MachineConfigPool } from '../api/machine-config-pool.ts';
import type { MachineOSBuild } from '../api/machine-os-build.ts';
import type { MachineOSConfig } from '../api/machine-os-config.ts';
import { annotations } from '../api/names.ts';
import type { NewObject } from '../api/object.ts';
import { plural } from '../api/plural.ts';
import type { PoolRevision } from '../api/pool-revision.ts';
import { grantRights, type ObservedRight, type RightChange, revokeRights } from './builder-rights.ts';
import { decidePrune, isUsed, type Pruning } from './decide-prune.ts';
import { decideMachineOSConfigs, type MachineOSConfigChanges, madeBySwitch } from './machine-os-configs.ts';
import { decideSigning, type SigningObservation, type SigningStep } from './signing-keys.ts';
import type { Signing, SwitchState } from './switch.ts';

/** Everything that the state of layering on a cluster consists of. */
export interface LayeringObservation extends SigningObservation {
  readonly state: SwitchState;
  readonly pools: readonly MachineConfigPool[];
  readonly machineOSConfigs: readonly MachineOSConfig[];
  readonly nodes: readonly MachineConfigNode[];
  /** What the nodes of each pool may run. */
  readonly revisions: readonly PoolRevision[];
  readonly builder: Deployment | undefined;
  /** The Deployment that the builder should have, for each way of signing. */
  readonly desiredBuilder: Readonly<Record<Signing, NewObject<Deployment>>>;
  /** The service account of the builder's pods and its bindings. */
  readonly rights: readonly ObservedRight[];
  /** Number of the builder's pods, terminating ones included. */
  readonly builderPods: number;
  /** Number of finished builds that a pool keeps beyond those in use. */
  readonly keepImages: number;
}

/** The next thing to do; after it the cluster is observed again. */
export type LayeringStep =
  | { readonly kind: 'startBuilder' | 'updateBuilder'; readonly desired: NewObject<Deployment> }
  | { readonly kind: 'stopBuilder' }
  | SigningStep
  | { readonly kind: 'changeRights'; readonly changes: readonly RightChange[] }
  | { readonly kind: 'changeMachineOSConfigs'; readonly changes: MachineOSConfigChanges }
  | ({ readonly kind: 'prune' } & Pruning)
  | { readonly kind: 'wait'; readonly why: string }
  | { readonly kind: 'settled' };

/**
 * Decides the next step towards what the switch says.
 *
 * On: the builder's permissions, the key that signs images, MachineOSConfigs, then the builder. Off: the builder first,
 * so that no image is built while nodes switch back; then its permissions, which it needs until it has ended; then the
 * switch's MachineOSConfigs, which returns nodes to the stock image. An image is deleted only when no node runs it or
 * is assigned to it, and the key last. The order holds from any state in between: a switch that is changed, or an
 * operator that is killed, half way ends where the last setting says.
 */
export function decideLayering(observation: LayeringObservation): LayeringStep {
  const changes = decideMachineOSConfigs(observation.state, observation.pools, observation.machineOSConfigs);
  const builderNeeded = isBuilderNeeded(observation);
  if (!builderNeeded && observation.builder !== undefined) return { kind: 'stopBuilder' };
  if (!builderNeeded && observation.builderPods > 0)
    return { kind: 'wait', why: 'the Machine OS Builder is stopping' };
  const rights = builderNeeded ? grantRights(observation.rights) : revokeRights(observation.rights);
  if (rights.length > 0) return { kind: 'changeRights', changes: rights };
  const signing = builderNeeded ? decideSigning(observation) : undefined;
  if (signing !== undefined) return signing;
  if (changes.create.length + changes.replace.length + changes.delete.length > 0) {
    return { kind: 'changeMachineOSConfigs', changes };
  }
  const desired = observation.desiredBuilder[observation.signing];
  if (builderNeeded && observation.builder === undefined) return { kind: 'startBuilder', desired };
  if (observation.builder !== undefined && isOutdated(observation.builder, desired))
    return { kind: 'updateBuilder', desired };
  const hasBuilder = observation.builder !== undefined || observation.builderPods > 0;
  const pruning = decidePrune({ ...observation, hasBuilder, keep: observation.keepImages });
  if (pruning.builds.length > 0) return { kind: 'prune', ...pruning };
  const waiting = orphanedBuilds(observation).filter((build) => isUsed(build, observation.nodes));
  if (waiting.length === 0) {
    const isOver =
      !builderNeeded && observation.machineOSConfigs.length === 0 && observation.builds.length === 0;
    return isOver && observation.publishedKeys !== undefined
      ? { kind: 'removeSigningKeys' }
      : { kind: 'settled' };
  }
  return {
    kind: 'wait',
    why: `nodes that are returning to the stock image still run ${plural(waiting.length, 'image')}`,
  };
}

/**
 * What the API server fills in can't be compared with what Shale sets, so its annotation says what the template was
 * made by; what runs, and with which arguments, is compared all the same: somebody may have edited it.
 */
function isOutdated(builder: Deployment, desired: NewObject<Deployment>): boolean {
  const essence = ({ metadata, spec }: Pick<NewObject<Deployment>, 'metadata' | 'spec'>) =>
    JSON.stringify([
      metadata.annotations?.[annotations.templateDigest],
      spec.replicas ?? 1,
      spec.template.spec.containers.map(({ name, image, command, args }) => [name, image, command, args]),
    ]);
  return essence(builder) !== essence(desired);
}

/** The builder serves the switch and every MachineOSConfig that an admin created. */
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
