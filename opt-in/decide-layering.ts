import type { ConfigMap, Deployment } from '../api/kubernetes.ts';
import type { MachineConfigNode } from '../api/machine-config-node.ts';
import type { MachineConfigPool } from '../api/machine-config-pool.ts';
import type { MachineOSBuild } from '../api/machine-os-build.ts';
import type { MachineOSConfig } from '../api/machine-os-config.ts';
import type { NewObject } from '../api/object.ts';
import { byCodeUnits } from '../api/order.ts';
import { plural } from '../api/plural.ts';
import type { DigestedPullspec } from '../api/references.ts';
import { conditionIsTrue } from '../cluster/update-object.ts';
import { decideRights, type ObservedRight, type RightChange } from './builder-rights.ts';
import { decideMachineOSConfigs, type MachineOSConfigChanges, madeBySwitch } from './machine-os-configs.ts';
import { decideSigningKeys, type Signing } from './signing-keys.ts';
import type { SwitchState } from './switch.ts';

/** Everything that the state of layering on a cluster consists of. */
export interface LayeringObservation {
  readonly state: SwitchState;
  readonly pools: readonly MachineConfigPool[];
  readonly machineOSConfigs: readonly MachineOSConfig[];
  readonly builds: readonly MachineOSBuild[];
  readonly nodes: readonly MachineConfigNode[];
  readonly signing: Signing;
  readonly signingKey: SigningKeyState;
  /** The ConfigMap of public keys. */
  readonly publishedKeys: ConfigMap | undefined;
  readonly now: Date;
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

/** The Secret with the key that signs images. */
export type SigningKeyState =
  /** It has a usable key; `publicKey` is in PEM. */
  | { readonly kind: 'usable'; readonly publicKey: string }
  | { readonly kind: 'missing' }
  /** Builds fail with the reason until an admin changes it. */
  | { readonly kind: 'unusable'; readonly why: string };

/** The next thing to do; after it the cluster is observed again. */
export type LayeringStep =
  | { readonly kind: 'startBuilder' | 'updateBuilder'; readonly desired: NewObject<Deployment> }
  | { readonly kind: 'stopBuilder' }
  | { readonly kind: 'createSigningKey' }
  | { readonly kind: 'publishSigningKeys'; readonly desired: NewObject<ConfigMap> }
  | { readonly kind: 'removeSigningKeys' }
  | { readonly kind: 'changeRights'; readonly changes: readonly RightChange[] }
  | { readonly kind: 'changeMachineOSConfigs'; readonly changes: MachineOSConfigChanges }
  | { readonly kind: 'prune'; readonly builds: readonly PrunedBuild[] }
  | { readonly kind: 'wait'; readonly why: string }
  | { readonly kind: 'settled' };

/**
 * Decides the next step towards what the switch says.
 *
 * On: the builder's permissions, the key that signs images, MachineOSConfigs, then the builder. Off: the builder first, so that no image is built while
 * nodes switch back; then its permissions, which it needs until it has ended; then the switch's MachineOSConfigs, which
 * returns nodes to the stock image. An image is deleted only when no node runs it or is assigned to it, and the key last. The order holds
 * from any state in between: a switch that is changed, or an operator that is killed, half way ends where the last setting
 * says.
 */
export function decideLayering(observation: LayeringObservation): LayeringStep {
  const changes = decideMachineOSConfigs(observation.state, observation.pools, observation.machineOSConfigs);
  const builderNeeded = isBuilderNeeded(observation);
  if (!builderNeeded && observation.builder !== undefined) return { kind: 'stopBuilder' };
  if (!builderNeeded && observation.builderPods > 0)
    return { kind: 'wait', why: 'the Machine OS Builder is stopping' };
  const rights = decideRights(observation.rights, builderNeeded);
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
  const pruned = decidePrune({ ...observation, keep: observation.keepImages });
  if (pruned.length > 0) return { kind: 'prune', builds: pruned };
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

/** Nodes must know a key before the first image that it signed. */
function decideSigning(observation: LayeringObservation): LayeringStep | undefined {
  const { signing, signingKey, publishedKeys: published, builds, now } = observation;
  if (signing === 'required' && signingKey.kind !== 'usable') {
    return signingKey.kind === 'missing' ? { kind: 'createSigningKey' } : undefined;
  }
  const current = signingKey.kind === 'usable' ? signingKey.publicKey : '';
  const desired = decideSigningKeys({ signing, published, current, builds, now });
  return desired === undefined ? undefined : { kind: 'publishSigningKeys', desired };
}

/** Compares only what Shale sets, not what the API server defaults. */
function isOutdated(builder: Deployment, desired: NewObject<Deployment>): boolean {
  const essence = ({ spec }: Pick<Deployment, 'spec'>) =>
    JSON.stringify([
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

export interface PruneObservation {
  readonly builds: readonly MachineOSBuild[];
  readonly machineOSConfigs: readonly MachineOSConfig[];
  readonly nodes: readonly MachineConfigNode[];
  /** Number of finished builds that a pool keeps beyond those in use: for rollbacks, and to show what failed last. */
  readonly keep: number;
}

/** A build that is no longer needed, with the images that are deleted with it. */
export interface PrunedBuild {
  readonly build: MachineOSBuild;
  /** Empty where a build that is kept has them too. */
  readonly images: readonly DigestedPullspec[];
}

/**
 * Decides which builds and images are deleted: those that no node runs or is assigned to, no pool has as its target, and no
 * rollback needs.
 *
 * A node that has not reported what it runs may run any image of its pool. An image is deleted by digest, and equal inputs
 * result in equal digests: it is kept while any build that is kept has it.
 */
export function decidePrune(observation: PruneObservation): readonly PrunedBuild[] {
  const pruned = observation.builds.filter((build) => !isNeeded(build, observation));
  const staying = observation.builds.filter((build) => !pruned.includes(build));
  const kept = new Set([...staying.flatMap(imagesOf), ...usedImages(observation.nodes)]);
  return pruned.map((build) => ({ build, images: imagesOf(build).filter((image) => !kept.has(image)) }));
}

/** @returns whether a node runs a build's image, is assigned to it, or may run it. */
function isUsed(build: MachineOSBuild, nodes: readonly MachineConfigNode[]): boolean {
  const image = build.status?.digestedImagePushSpec;
  if (image === undefined) return false;
  return (
    usedImages(nodes).includes(image) ||
    nodes.some((node) => isSilent(node) && poolOf(node) === poolOfBuild(build))
  );
}

function isNeeded(build: MachineOSBuild, observation: PruneObservation): boolean {
  if (isUsed(build, observation.nodes)) return true;
  const config = observation.machineOSConfigs.find(
    ({ metadata }) => metadata.name === build.spec.machineOSConfig.name,
  );
  if (config === undefined) return false;
  if (config.status?.machineOSBuild?.name === build.metadata.name || !isOver(build)) return true;
  const alike = observation.builds
    .filter(({ spec }) => spec.machineOSConfig.name === config.metadata.name)
    .filter((other) => isOver(other) && hasSucceeded(other) === hasSucceeded(build))
    .sort(newestFirst);
  return alike.indexOf(build) < observation.keep;
}

function usedImages(nodes: readonly MachineConfigNode[]): string[] {
  return nodes.flatMap(({ spec, status }) =>
    [spec.configImage?.desiredImage, status?.configImage?.currentImage].filter(
      (image) => image !== undefined,
    ),
  );
}

function isSilent({ status }: MachineConfigNode): boolean {
  return status?.mode === undefined;
}

function poolOf({ spec }: MachineConfigNode): string {
  return spec.pool.name;
}

/** A MachineOSConfig has the name of its pool (machineOSConfigRules). */
function poolOfBuild({ spec }: MachineOSBuild): string {
  return spec.machineOSConfig.name;
}

function imagesOf({ status }: MachineOSBuild): DigestedPullspec[] {
  // Digested by the schema of the status.
  const instances = (status?.instances ?? []).flatMap(({ image, engineImage }) => [image, engineImage]);
  const images = [status?.digestedImagePushSpec, ...instances, status?.engineImage];
  return (images as (DigestedPullspec | undefined)[]).filter((image) => image !== undefined);
}

function hasSucceeded({ status }: MachineOSBuild): boolean {
  return conditionIsTrue(status?.conditions, 'Succeeded');
}

function isOver(build: MachineOSBuild): boolean {
  return ['Succeeded', 'Failed', 'Interrupted'].some((type) =>
    conditionIsTrue(build.status?.conditions, type),
  );
}

/** Of builds that ended in the same second, the names decide. */
function newestFirst(a: MachineOSBuild, b: MachineOSBuild): number {
  const end = ({ status }: MachineOSBuild) => status?.buildEnd ?? '';
  return byCodeUnits(end(b), end(a)) || byCodeUnits(a.metadata.name, b.metadata.name);
}
