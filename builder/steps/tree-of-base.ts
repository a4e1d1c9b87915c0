import { outcomeOf } from '../../api/build-outcome.ts';
import type { BaseRecord, MachineOSBuild } from '../../api/machine-os-build.ts';
import { by } from '../../api/order.ts';
import {
  type DigestedPullspec,
  parseDigest,
  parseDigestedPullspec,
  repositoryOf,
} from '../../api/references.ts';
import { describeImage } from '../../image/append.ts';
import { pushBaseRecord, readBaseRecord } from '../../image/base/base-record.ts';
import type { BaseTree } from '../../image/base/base-tree.ts';
import { BaseTrees, type KeptTree } from '../../image/base/base-trees.ts';
import { type BaseImage, chainIds } from '../../image/base/read-base.ts';
import { byDigest, parseReference } from '../../image/reference.ts';
import type { RegistryClient } from '../../image/registry/registry-client.ts';
import { ContentError, RegistryError } from '../../image/registry/registry-error.ts';

/** What is known of a base. */
interface KnownBase {
  readonly tree: BaseTree;
  /** Absent if it would not be found again, or if the registry rejects it. */
  readonly record?: BaseRecord | undefined;
}

/** How a base is known. */
export interface BaseKnowledge {
  /** The trees of bases that this process knows; absent: the base is read. */
  readonly baseTrees?: BaseTrees | undefined;
  /** Records of the pool's builds; absent: none is pushed, because it would not be found again. */
  readonly baseRecords?: readonly BaseRecord[] | undefined;
}

interface KnowingInput extends BaseKnowledge {
  readonly architecture: string;
  /** The record is pushed there as well. */
  readonly pushSpec: string;
  /** The stock image, by digest, where the base is an engine's image made of it. */
  readonly stockImage?: DigestedPullspec | undefined;
}

/**
 * Finds what a base consists of: known to this process, recorded by a build that succeeded, or read from its layers. A
 * record is found by the digest in that build's status, which nobody but the builder writes, and nobody once the build
 * has succeeded.
 *
 * @throws RegistryError, ContentError
 */
export async function treeOfBase(
  client: RegistryClient,
  input: KnowingInput,
  image: BaseImage,
  signal: AbortSignal,
): Promise<KnownBase> {
  const { baseTrees = new BaseTrees(), baseRecords, stockImage, architecture } = input;
  const gone = new Set<BaseRecord>();
  const kept = (baseRecords ?? []).map((record) =>
    keptTree(client, record, signal, () => void gone.add(record)),
  );
  const stock = async (): Promise<BaseImage | undefined> => {
    if (stockImage === undefined) return undefined;
    const reference = parseReference(stockImage);
    return { reference, description: await describeImage(client, reference, architecture, signal) };
  };
  const tree = await baseTrees.treeOf(client, { ...image, stock }, kept, signal);
  if (baseRecords === undefined) return { tree };
  const chainID = chainIds(image.description.config.rootfs.diff_ids).at(-1);
  const known = baseRecords.find((record) => record.chainID === chainID && !gone.has(record));
  if (known !== undefined || chainID === undefined) return { tree, record: known };
  try {
    const target = parseReference(input.pushSpec);
    const digest = await pushBaseRecord(client, target, { chainId: chainID, tree }, signal);
    return { tree, record: { chainID, image: byDigest(target, digest) } };
  } catch (error) {
    // A registry that takes images alone: the next process reads the base again. One that is away gets no image either.
    if (signal.aborted || !isRefusal(error)) throw error;
    baseTrees.unrecorded(image, error);
    return { tree };
  }
}

function isRefusal(error: unknown): error is RegistryError | ContentError {
  return error instanceof ContentError || (error instanceof RegistryError && !error.temporary);
}

/**
 * @param onGone called if the record turns out to be gone from its registry.
 * @returns the tree that a record has, read when it is asked for.
 */
export function keptTree(
  client: RegistryClient,
  record: BaseRecord,
  signal: AbortSignal,
  onGone: () => void = () => undefined,
): KeptTree {
  return {
    chainId: parseDigest(record.chainID),
    read: async () => {
      const tree = await readTreeRecord(client, record, signal);
      if (tree === undefined) onGone();
      return tree;
    },
  };
}

/** @returns what a record has; undefined where it is gone. @throws RegistryError, ContentError */
export async function readTreeRecord(
  client: RegistryClient,
  { image }: Pick<BaseRecord, 'image'>,
  signal: AbortSignal,
): Promise<BaseTree | undefined> {
  const reference = parseReference(image);
  const { digest } = reference;
  return digest === undefined ? undefined : readBaseRecord(client, { ...reference, digest }, signal);
}

/**
 * @param builds of one MachineOSConfig. @param pushSpec of its images: records elsewhere may need other credentials.
 * @returns the records of those that succeeded, newest first, one for each base.
 */
export function recordedBases(builds: readonly MachineOSBuild[], pushSpec: string): readonly BaseRecord[] {
  const newestFirst = builds
    .filter((build) => outcomeOf(build) === 'Succeeded')
    .toSorted(by(({ status }) => status?.buildEnd ?? ''))
    .toReversed();
  const records = newestFirst
    .flatMap(({ status }) => [
      status?.baseRecord,
      ...(status?.instances ?? []).map((each) => each.baseRecord),
    ])
    .filter((record) => record !== undefined)
    .filter(({ image }) => repositoryOf(parseDigestedPullspec(image)) === repositoryOf(pushSpec));
  return [...new Map(records.toReversed().map((record) => [record.chainID, record])).values()];
}
