import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import type { MachineOSConfig } from '../../api/machine-os-config.ts';
import { keptTree, recordedBases } from '../../builder/steps/tree-of-base.ts';
import type { KeptTree } from '../../image/base/base-trees.ts';
import { goArchitecture } from '../../image/manifest.ts';
import { parseReference } from '../../image/reference.ts';
import { compareImages } from '../../image/vulnerabilities/compare-images.ts';
import { type GivenReport, unusedReports } from '../../image/vulnerabilities/given-reports.ts';
import type { ReportedImage } from '../../image/vulnerabilities/image-reports.ts';
import type { ChangedBase } from '../../predict/image/base-change.ts';
import { layeredRenderings } from '../../predict/objects/offline-rendering.ts';
import type { PoolPrediction } from '../../predict/plan.ts';
import type { Change } from '../change/file-flags.ts';
import { rethrowReportError } from '../command-line/report-flags.ts';
import { type NamedImage, READING_DEADLINE_MS, readBoth } from '../image/read-contents.ts';
import { askRegistry, type LookupAccess, type PoolRegistry } from './pool-registry.ts';
import { baseContents, contentsOfRecords, recordsOfChange } from './recorded-bases.ts';

/** What is read of new base images. */
export interface NewBases {
  readonly access: LookupAccess;
  /** Packages, kernels, units and users: of base images that builds have recorded, or of all. */
  readonly contents: 'recorded' | 'all';
  /** Reports beside those that are attached to the images; undefined: none are read. */
  readonly reports: readonly GivenReport[] | undefined;
}

/**
 * Reads what the new base images of pools bring, one after the other: from the records that builds of the cluster have
 * made, which statuses name by digest, from the layers of images without one, and from reports of vulnerabilities.
 *
 * @returns the predictions, with what is known of each base image that changes.
 * @throws {CommandError} for flags that can't be used; the reason of the signal.
 */
export async function readChangedBases(
  predictions: readonly PoolPrediction[],
  { after, live }: Pick<Change, 'after' | 'live'>,
  newBases: NewBases,
  signal: AbortSignal,
): Promise<readonly PoolPrediction[]> {
  const changed = layeredRenderings(after).flatMap(({ pool, machineOSConfig, rendering }) => {
    const plan = predictions.find((each) => each.plan.pool === pool)?.plan;
    if (plan === undefined || 'problems' in plan || plan.baseChange === undefined) return [];
    const { status } = after.pools.find(({ metadata }) => metadata.name === pool) ?? {};
    const architecture = status?.architectures?.[0] ?? goArchitecture(process.arch);
    return [
      { pool, machineOSConfig, architecture, rendered: rendering.rendered, baseChange: plan.baseChange },
    ];
  });
  const read = new Map<string, ChangedBase>();
  // Pools mostly share their base image: what one has read, the next need not.
  const answers = new Map<string, ChangedBase>();
  const images: ReportedImage[] = [];
  for (const request of changed) {
    const { baseChange, architecture, pool } = request;
    const key = JSON.stringify([baseChange, architecture]);
    const known = answers.get(key);
    const base = isWhole(known) ? known : await readOne(request, live?.builds ?? []);
    answers.set(key, base);
    read.set(pool, base);
  }
  const unused = unusedReports(newBases.reports ?? [], images).map(
    (file) => `${file} is about no base image that changes: not used`,
  );
  return predictions.map(({ plan, ...others }) => {
    if ('problems' in plan || plan.baseChange === undefined) return { plan, ...others };
    const baseChange = read.get(plan.pool) ?? unreadOf(plan.baseChange, newBases);
    return { ...others, plan: { ...plan, baseChange: withRemarks(baseChange, unused) } };
  });

  async function readOne(request: ChangeRequest, builds: readonly MachineOSBuild[]): Promise<ChangedBase> {
    const { contents, reports, access } = newBases;
    const read = contents === 'all' ? withContents : withRecorded;
    const base = await read(request, builds, access, signal);
    if (reports === undefined) return base;
    const answer = await compareReported(request, reports, access, signal);
    if (answer.kind === 'unknown') return { ...base, vulnerabilitiesUnread: answer.why };
    images.push(...answer.value.images);
    return { ...base, vulnerabilities: answer.value.diff };
  }
}

function isWhole(known: ChangedBase | undefined): known is ChangedBase {
  return known !== undefined && known.unread === undefined && known.vulnerabilitiesUnread === undefined;
}

/** Only of a layered pool it is known which Secrets its base images are pulled with. */
function unreadOf(baseChange: ChangedBase, { reports }: NewBases): ChangedBase {
  return reports === undefined
    ? baseChange
    : { ...baseChange, vulnerabilitiesUnread: 'the pool is not layered, so nothing is read of its images' };
}

function withRemarks(baseChange: ChangedBase, remarks: readonly string[]): ChangedBase {
  const { vulnerabilities } = baseChange;
  if (vulnerabilities === undefined || remarks.length === 0) return baseChange;
  return {
    ...baseChange,
    vulnerabilities: { ...vulnerabilities, remarks: [...vulnerabilities.remarks, ...remarks] },
  };
}

interface ChangeRequest {
  readonly pool: string;
  readonly machineOSConfig: MachineOSConfig;
  readonly rendered: MachineConfig;
  readonly architecture: string;
  readonly baseChange: ChangedBase;
}

/** A plan is the same without them, so there is no reason to say why one could not be read. */
async function withRecorded(
  request: ChangeRequest,
  builds: readonly MachineOSBuild[],
  access: LookupAccess,
  signal: AbortSignal,
): Promise<ChangedBase> {
  const { architecture, baseChange } = request;
  const records = recordsOfChange(baseChange, architecture, builds);
  if (records === undefined) return baseChange;
  const answer = await askRegistry(registryOf(request), access, signal, (client, bounded) =>
    contentsOfRecords(client, baseChange, { records, architecture }, bounded),
  );
  const contents = answer.kind === 'answer' ? answer.value : undefined;
  return contents === undefined ? baseChange : { ...baseChange, contents };
}

async function withContents(
  request: ChangeRequest,
  builds: readonly MachineOSBuild[],
  access: LookupAccess,
  signal: AbortSignal,
): Promise<ChangedBase> {
  const { machineOSConfig, architecture, baseChange } = request;
  const { renderedImagePushSpec } = machineOSConfig.spec;
  const own = builds.filter(({ spec }) => spec.machineOSConfig.name === machineOSConfig.metadata.name);
  const records = recordedBases(own, renderedImagePushSpec);
  const answer = await askRegistry(
    registryOf(request),
    access,
    signal,
    async (client, bounded) => {
      const kept = records.map((record) => withFacts(keptTree(client, record, bounded)));
      const [before, after] = await readBoth(client, imagesOf(baseChange), { architecture, kept }, bounded);
      return baseContents(before.contents, after.contents, { from: before.name, to: after.name });
    },
    READING_DEADLINE_MS,
  );
  return answer.kind === 'answer'
    ? { ...baseChange, contents: answer.value }
    : { ...baseChange, unread: answer.why };
}

/** ms; reports have some megabytes. */
const REPORTS_DEADLINE_MS = 120_000;

/** @throws CommandError for a file with a report of another image than it is said to be. */
function compareReported(
  request: ChangeRequest,
  given: readonly GivenReport[],
  access: LookupAccess,
  signal: AbortSignal,
) {
  const { architecture, baseChange } = request;
  return askRegistry(
    registryOf(request),
    access,
    signal,
    (client, bounded) =>
      compareImages(client, imagesOf(baseChange), { architecture, given }, bounded).catch(rethrowReportError),
    REPORTS_DEADLINE_MS,
  );
}

function registryOf({ pool, machineOSConfig, rendered }: ChangeRequest): PoolRegistry {
  const { baseImagePullSecret, renderedImagePushSecret } = machineOSConfig.spec;
  return { pool, secrets: [baseImagePullSecret?.name, renderedImagePushSecret?.name], rendered };
}

function imagesOf({ from, to }: ChangedBase): readonly [NamedImage, NamedImage] {
  const named = (name: string) => ({ name, reference: parseReference(name) });
  return [named(from), named(to)];
}

/** Records from before facts were kept tell nothing of packages, so those images are read. */
function withFacts({ chainId, read }: KeptTree): KeptTree {
  return {
    chainId,
    read: async (signal) => {
      const tree = await read(signal);
      return tree?.hasFacts === true ? tree : undefined;
    },
  };
}
