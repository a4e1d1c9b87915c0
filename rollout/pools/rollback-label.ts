import type { BuildConditionType, MachineOSBuild } from '../../api/machine-os-build.ts';
import { annotations } from '../../api/names.ts';
import { byCreation } from '../../api/order.ts';
import type { BuiltImages } from './pool-target.ts';
import { buildsOfSameContent, hasCondition } from './same-content.ts';

/** What the builds of a pool and their images say about the image that the pool is rolled back to. */
export interface ImageKnowledge extends BuiltImages {
  /** @returns whether the image of a build is in the record of the pool. */
  readonly isRecorded: (build: MachineOSBuild) => boolean;
}

/** The label of an image by which nodes are rolled back. */
export type RollbackLabel =
  /** `reboots`: why its label makes nodes reboot that could be rolled back live. */
  | { readonly kind: 'found'; readonly image: string; readonly reboots?: string }
  /** Another label of the same image follows; `candidate`: a build whose image is to be checked and recorded. */
  | { readonly kind: 'follows'; readonly why: string; readonly candidate?: MachineOSBuild };

/**
 * Decides under which label a pool is rolled back to an image of its record. The label it had then doesn't list what
 * nodes run now. The builder labels the same image again; that one is assigned once the operator has recorded it.
 * Whatever keeps it from coming, the recorded image is there, to which nodes reboot.
 *
 * @param image of the record, by digest.
 * @returns the label of it to assign; the newest that suffices, so that nodes that have it are not given another.
 */
export function rollbackLabel(image: string, known: ImageKnowledge): RollbackLabel {
  const origin = known.builds.find((build) => imageOf(build) === image && hasCondition(build, 'Succeeded'));
  // Without its build it is unknown what the label lists, and nobody labels the image again.
  if (origin === undefined) return { kind: 'found', image };
  const labelled = labelledAgain(origin, known);
  const sufficient = labelled.filter((build) => known.unlisted(build).length === 0);
  const recorded = sufficient.findLast(known.isRecorded);
  if (recorded !== undefined) return { kind: 'found', image: imageOf(recorded) ?? image };
  const unlisted = known.unlisted(origin);
  if (unlisted.length === 0) return { kind: 'found', image };
  const short = `its label has no transition from ${unlisted.join(' and ')}, which nodes run`;
  const reboot = (why: string) => ({ kind: 'found', image, reboots: `${short}, and ${why}` }) as const;
  const candidate = sufficient.findLast((build) => known.checkOf(build)?.kind !== 'refused');
  if (candidate !== undefined) return checking(candidate, known);
  const refused = sufficient.at(-1);
  const check = refused && known.checkOf(refused);
  if (refused !== undefined && check !== undefined)
    return reboot(`the image of MachineOSBuild ${refused.metadata.name} is refused: ${check.why}`);
  return atWork(origin, known, reboot);
}

function checking(candidate: MachineOSBuild, { checkOf }: ImageKnowledge): RollbackLabel {
  const { name } = candidate.metadata;
  const state = checkOf(candidate)?.why ?? 'it is being compared with what the MachineConfigs say';
  return { kind: 'follows', why: `MachineOSBuild ${name} labelled it again: ${state}`, candidate };
}

/** The state of the latest build that is to label the image again for what nodes run now. */
function atWork(
  origin: MachineOSBuild,
  { builds, policyDigest, unlisted }: ImageKnowledge,
  reboot: (why: string) => RollbackLabel,
): RollbackLabel {
  const first = firstOf(origin);
  const last = builds
    .filter(
      ({ metadata, spec }) =>
        metadata.annotations?.[annotations.relabels] === first && spec.policyDigest === policyDigest,
    )
    .toSorted(byCreation)
    .at(-1);
  const follows: RollbackLabel = { kind: 'follows', why: 'the builder labels it again' };
  if (last === undefined) return follows;
  const name = `MachineOSBuild ${last.metadata.name}`;
  if (hasCondition(last, 'Failed'))
    return reboot(`${name}, which labels it again, failed${messageOf(last, 'Failed')}`);
  if (!hasCondition(last, 'Succeeded')) return { ...follows, why: `${name} labels it again` };
  // Another version of Shale can write another layer.
  return unlisted(last).length === 0
    ? reboot(`the content of ${name}, which labels it again, is another`)
    : follows;
}

/** @returns builds that labelled the image again, oldest first. One that sent a layer made another image. */
function labelledAgain(origin: MachineOSBuild, { builds }: ImageKnowledge): readonly MachineOSBuild[] {
  return buildsOfSameContent(builds, origin).filter(
    ({ metadata, status }) =>
      metadata.name !== origin.metadata.name &&
      metadata.deletionTimestamp === undefined &&
      status?.builder?.imageBuilderType === 'Relabel',
  );
}

function firstOf({ metadata }: MachineOSBuild): string {
  return metadata.annotations?.[annotations.relabels] ?? metadata.name;
}

function imageOf({ status }: MachineOSBuild): string | undefined {
  return status?.digestedImagePushSpec;
}

function messageOf({ status }: MachineOSBuild, type: BuildConditionType): string {
  const message = status?.conditions?.find((each) => each.type === type)?.message ?? '';
  return message === '' ? '' : `: ${message}`;
}
