import { outcomeOf } from '../../api/build-outcome.ts';
import type { BaseRecord, MachineOSBuild } from '../../api/machine-os-build.ts';
import { digestInName } from '../../api/references.ts';
import { readTreeRecord } from '../../builder/steps/tree-of-base.ts';
import { diffContents } from '../../image/contents/diff-contents.ts';
import { contentsOf, type ImageContents } from '../../image/contents/image-contents.ts';
import { summaryOf } from '../../image/contents/summary.ts';
import type { RegistryClient } from '../../image/registry/registry-client.ts';
import type { BaseContents, ChangedBase } from '../../predict/image/base-change.ts';

/** The records of two base images. */
export type RecordPair = readonly [from: BaseRecord, to: BaseRecord];

/**
 * @param builds of all pools: another one may have the base image already.
 * @returns the records of both base images; undefined where builds have recorded only one of them, or none.
 */
export function recordsOfChange(
  { from, to }: ChangedBase,
  architecture: string,
  builds: readonly MachineOSBuild[],
): RecordPair | undefined {
  const [before, after] = [from, to].map((base) =>
    builds
      .filter((build) => outcomeOf(build) === 'Succeeded')
      .map((build) => recordOf(build, base, architecture))
      .findLast((record) => record !== undefined),
  );
  return before === undefined || after === undefined ? undefined : [before, after];
}

/** Where commands ran, the record is of what they made of the base. */
function recordOf({ status }: MachineOSBuild, base: string, architecture: string): BaseRecord | undefined {
  const digest = digestInName(base);
  const instance = status?.instances?.find((each) => each.architecture === architecture);
  const { engineImage, baseRecord } = instance ?? status ?? {};
  const bases = [status?.baseImage, instance?.baseImage].map(digestInName);
  return engineImage === undefined && digest !== undefined && bases.includes(digest) ? baseRecord : undefined;
}

/**
 * @returns what a new base image brings, by the records alone; undefined where one is gone or has no packages.
 * @throws RegistryError, ContentError
 */
export async function contentsOfRecords(
  client: RegistryClient,
  { from, to }: ChangedBase,
  { records, architecture }: { readonly records: RecordPair; readonly architecture: string },
  signal: AbortSignal,
): Promise<BaseContents | undefined> {
  const [before, after] = await Promise.all(records.map((record) => readTreeRecord(client, record, signal)));
  if (before?.hasFacts !== true || after?.hasFacts !== true) return undefined;
  return baseContents(contentsOf(before, architecture), contentsOf(after, architecture), { from, to });
}

/** @param names of the two base images, for messages. @returns what the new one brings. */
export function baseContents(
  before: ImageContents,
  after: ImageContents,
  names: Pick<ChangedBase, 'from' | 'to'>,
): BaseContents {
  const diff = diffContents(before, after, names);
  return { ...diff, summary: summaryOf(diff, true) };
}
