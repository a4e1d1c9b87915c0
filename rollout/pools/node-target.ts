import { isDeepStrictEqual } from 'node:util';
import { labelsWithNames } from '../../api/label-selector.ts';
import type { MachineConfigNodeSpec, NextBoot } from '../../api/machine-config-node.ts';
import { labels } from '../../api/names.ts';
import type { ObjectMeta } from '../../api/object.ts';
import { present } from '../../api/present.ts';
import { parseDigestedPullspec } from '../../api/references.ts';
import type { AssignedSettings } from './pool-settings.ts';

/** What one node should run: `image` present means layered, absent means standard mode. */
export interface NodeTarget {
  readonly config: string;
  /** The layered image by digest. */
  readonly image?: string | undefined;
  /** The stock image of standard mode, where a MachineConfig names one. */
  readonly osImage?: string | undefined;
}

/** @returns the target that a MachineConfigNode's spec states. */
export function nodeTargetOf(spec: MachineConfigNodeSpec): NodeTarget {
  return {
    config: spec.configVersion.desired,
    ...present({ image: spec.configImage?.desiredImage, osImage: spec.osImage }),
  };
}

/** @returns whether both ask the same of a node. */
export function sameTarget(a: NodeTarget, b: NodeTarget): boolean {
  return a.config === b.config && a.image === b.image && a.osImage === b.osImage;
}

/**
 * @returns whether the spec asks just that of its node. Without an object for each node and look, as {@link
 * nodeTargetOf} makes.
 */
export function hasTarget(
  { configVersion, configImage, osImage }: MachineConfigNodeSpec,
  target: NodeTarget,
): boolean {
  return (
    configVersion.desired === target.config &&
    configImage?.desiredImage === target.image &&
    osImage === target.osImage
  );
}

/** The parts of a MachineConfigNode's spec that the rollout sets along with the target. */
export interface Assignment {
  readonly pool: string;
  readonly target: NodeTarget;
  readonly policyDigest: string | undefined;
  /** Version of the keys that images must be signed with (api/image-signing.ts); undefined until they are published. */
  readonly imageSigningKeys: string | undefined;
  readonly settings: AssignedSettings;
  /** Why the node can't apply the target while it runs; undefined where it can. */
  readonly irreconcilable: string | undefined;
  /** Who else holds the node, so that its disk stays as it is. Absent: nobody. */
  readonly heldBy?: string | undefined;
  /** Whether the node may make the target its next boot, without rebooting. Absent: no. */
  readonly armed?: boolean;
}

/**
 * The merge patch (RFC 7386) that gives a node its target.
 *
 * @param current the spec as it is.
 * @returns undefined when nothing would change. A changed target takes an earlier grant away, which named the old one.
 */
export function assignmentPatch(
  current: MachineConfigNodeSpec,
  assignment: Assignment,
): Readonly<Record<string, unknown>> | undefined {
  const { pool, target, policyDigest } = assignment;
  const moved = !hasTarget(current, target);
  const others = otherFieldsPatch(current, assignment);
  const changed =
    moved ||
    Object.keys(others).length > 0 ||
    current.pool.name !== pool ||
    (policyDigest !== undefined && current.policyDigest !== policyDigest);
  if (!changed) return undefined;
  return {
    pool: { name: pool },
    ...present({ policyDigest }),
    ...others,
    ...(moved
      ? {
          configVersion: { desired: target.config },
          configImage: target.image === undefined ? null : { desiredImage: target.image },
          osImage: target.osImage ?? null,
          grant: null,
        }
      : {}),
  };
}

/** @returns the merge patch of what goes along with a target, whether or not that moves. */
function otherFieldsPatch(
  current: MachineConfigNodeSpec,
  assignment: Assignment,
): Readonly<Record<string, unknown>> {
  const before: Partial<Record<string, unknown>> = { ...current };
  return Object.fromEntries(
    Object.entries(otherFields(assignment)).flatMap(([field, value]) =>
      isDeepStrictEqual(before[field], value) ? [] : [[field, value ?? null]],
    ),
  );
}

/** @returns every field of a spec that goes along with a target; undefined is absent. */
function otherFields(assignment: Assignment) {
  const { target, imageSigningKeys, settings, irreconcilable, heldBy } = assignment;
  return {
    imageSigningKeys: target.image === undefined ? undefined : imageSigningKeys,
    ...settings,
    nextBoot: nextBootOf(assignment),
    irreconcilable,
    heldBy,
  };
}

/** The permission names its target, as a grant does: for another one it is void. */
function nextBootOf({ armed = false, target: { config, image } }: Assignment): NextBoot | undefined {
  return armed && image !== undefined ? { config, image: parseDigestedPullspec(image) } : undefined;
}

/** @returns the labels of the MachineConfigNode of a node in a pool: `kubectl get mcn -l` selects by them. */
export function poolLabels(pool: string): Readonly<Record<string, string>> {
  return labelsWithNames({ [labels.pool]: pool });
}

/** @returns the merge patch of the labels of a MachineConfigNode; undefined when they name the pool already. */
export function poolLabelsPatch(
  { labels: current }: Pick<ObjectMeta, 'labels'>,
  pool: string,
): Readonly<Record<string, string | null>> | undefined {
  if (current?.[labels.pool] === pool) return undefined;
  const desired = poolLabels(pool)[labels.pool];
  return current?.[labels.pool] === desired ? undefined : { [labels.pool]: desired ?? null };
}

/**
 * @returns the spec as it is after {@link assignmentPatch}: itself where that changes nothing, as for most nodes at any
 * time.
 */
export function assignedSpec(current: MachineConfigNodeSpec, assignment: Assignment): MachineConfigNodeSpec {
  if (assignmentPatch(current, assignment) === undefined) return current;
  return specWith(current, assignment);
}

/** @param current the spec before, or what it has of its own where it is new. */
export function specWith(current: MachineConfigNodeSpec, assignment: Assignment): MachineConfigNodeSpec {
  const { pool, target, policyDigest } = assignment;
  const { configImage: _image, osImage: _os, grant, ...rest } = current;
  const others = otherFields(assignment);
  const kept = Object.fromEntries(Object.entries(rest).filter(([field]) => !(field in others)));
  return {
    ...(kept as Pick<MachineConfigNodeSpec, 'node'>),
    pool: { name: pool },
    configVersion: { desired: target.config },
    ...present({
      configImage: target.image === undefined ? undefined : { desiredImage: target.image },
      osImage: target.osImage,
      policyDigest,
      ...others,
      grant: hasTarget(current, target) ? grant : undefined,
    }),
  };
}
