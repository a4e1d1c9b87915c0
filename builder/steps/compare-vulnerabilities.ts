import type { Logger } from 'pino';
import { outcomeOf } from '../../api/build-outcome.ts';
import { cutText } from '../../api/cut-text.ts';
import { errorMessage } from '../../api/error-message.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { type MachineOSBuild, MachineOSBuilds } from '../../api/machine-os-build.ts';
import type { MachineOSConfig } from '../../api/machine-os-config.ts';
import { by } from '../../api/order.ts';
import { settingOf } from '../../api/pool-settings/read-settings.ts';
import { digestInName } from '../../api/references.ts';
import {
  type BaseVulnerabilities,
  hasSeverity,
  type LeastSeverity,
  LONGEST_VULNERABILITY_NAME,
  MOST_COMPARED_BASES,
  MOST_NAMED_VULNERABILITIES,
} from '../../api/vulnerabilities.ts';
import { updateStatus } from '../../cluster/update-object.ts';
import { parseReference } from '../../image/reference.ts';
import { createMirroredClient } from '../../image/registry/mirrored-client.ts';
import type { RegistryClient } from '../../image/registry/registry-client.ts';
import { compareImages } from '../../image/vulnerabilities/compare-images.ts';
import { severityCounts, type VulnerabilityDiff } from '../../image/vulnerabilities/compare-reports.ts';
import { type BuildCaches, renderedConfigOf } from '../observe.ts';
import { renderedRegistries } from '../rendered-registries.ts';
import { type RegistryAccessOptions, readRegistryAccess } from '../secrets.ts';

export interface VulnerabilityRecorderOptions extends RegistryAccessOptions {
  readonly caches: BuildCaches;
  readonly log: Logger;
  readonly architecture: string;
  readonly now: () => Date;
  readonly signal: AbortSignal;
}

/** Two base images: what nodes run, and what they would get. */
interface BasePair {
  /** By digest. */
  readonly from: string;
  readonly to: string;
  /** Absent where it is not known of an index. */
  readonly architecture?: string | undefined;
}

/** ms; what holds a pool is looked at again, because reports and VEX come after the image. */
const AGAIN_MS = 300_000;
/** ms for the reports of two images: a registry that doesn't answer must not keep builds from being created. */
const DEADLINE_MS = 30_000;

/**
 * @param builds of the pool's MachineOSConfig: by those that succeeded it is known which architecture a base is for.
 * @returns the base images that nodes of a pool run and the image of a build would replace, each with the one that
 *   would; none where both are the same.
 */
export function basePairs(
  build: MachineOSBuild,
  nodes: readonly MachineConfigNode[],
  builds: readonly MachineOSBuild[],
): readonly BasePair[] {
  const { baseImage, instances } = build.status ?? {};
  const own = [baseImage, ...(instances ?? []).map((each) => each.baseImage)].map(digestInName);
  const architectures = new Map(
    builds
      .flatMap(({ status }) => status?.instances ?? [])
      .map((each) => [digestInName(each.baseImage), each.architecture]),
  );
  const froms = new Map(
    nodes
      .map(({ status }) => status?.baseImage ?? '')
      .map((base) => [digestInName(base), base] as const)
      .filter(([digest]) => digest !== undefined && !own.includes(digest)),
  );
  const tos = instances ?? (baseImage === undefined ? [] : [{ baseImage, architecture: undefined }]);
  return [...froms]
    .toSorted(by(([digest]) => digest ?? ''))
    .flatMap(([digest, from]) => {
      const of = architectures.get(digest);
      return tos
        .filter(({ architecture }) => of === undefined || architecture === undefined || architecture === of)
        .map(({ baseImage: to, architecture }) => ({ from, to, architecture }));
    })
    .slice(0, MOST_COMPARED_BASES);
}

/**
 * @param least what the pool must not get; undefined where it may get anything.
 * @param now ms since the epoch.
 * @returns whether the reports of a pair are to be read: once, and again from time to time while what they say holds
 *   the pool's updates.
 */
export function isDue(
  known: BaseVulnerabilities | undefined,
  least: LeastSeverity | undefined,
  now: number,
): boolean {
  if (known === undefined) return true;
  return holdsBack(known, least) && now - Date.parse(known.checkedAt) >= AGAIN_MS;
}

function holdsBack({ result, brought = {} }: BaseVulnerabilities, least: LeastSeverity | undefined): boolean {
  return least !== undefined && (result === 'NoReport' || hasSeverity(brought, least));
}

/** @returns what a status has of a comparison. */
export function recordedVulnerabilities(
  { from, to }: Pick<BasePair, 'from' | 'to'>,
  diff: VulnerabilityDiff | { readonly unread: string },
  now: Date,
): BaseVulnerabilities {
  const about = { from, to, checkedAt: now.toISOString().replace(/\.\d+Z$/, 'Z') };
  const noReport = (why: string): BaseVulnerabilities => ({
    ...about,
    result: 'NoReport',
    message: cutText(why, LONGEST),
  });
  if ('unread' in diff) return noReport(`the reports could not be read: ${diff.unread}`);
  const { reports, brought, fixed, remarks } = diff;
  if (brought === undefined || fixed === undefined) return noReport(remarks.join('; '));
  const used = [reports.from, reports.to].map((report) => `${report?.tool} (${report?.source})`);
  const worst = brought.slice(0, MOST_NAMED_VULNERABILITIES).map(({ id, severity, packages }) => ({
    id: cutText(id, LONGEST_VULNERABILITY_NAME),
    severity,
    package: cutText(packages[0]?.name ?? '', LONGEST_VULNERABILITY_NAME),
  }));
  return {
    ...about,
    result: 'Compared',
    message: cutText([`reports of ${used.join(' and ')}, not verified`, ...remarks].join('; '), LONGEST),
    brought: severityCounts(brought),
    fixed: severityCounts(fixed),
    ...(worst.length === 0 ? {} : { worst }),
  };
}

/** Of a message; the schema limits it. */
const LONGEST = 1024;

/**
 * Records on a build that succeeded what its base image brings and fixes in the place of those that nodes run, by the
 * reports that are attached to both. Nothing is chosen by it: a pool may hold the image back (spec.shale.holds).
 */
export class VulnerabilityRecorder {
  readonly #options: VulnerabilityRecorderOptions;

  constructor(options: VulnerabilityRecorderOptions) {
    this.#options = options;
  }

  /**
   * Reads the reports that are due, and writes the results to the status, also of those that can't be read.
   *
   * @returns ms after which it has to be asked again; undefined where nothing holds the pool.
   * @throws ApiError
   */
  async record(
    config: MachineOSConfig,
    build: MachineOSBuild,
    pool: MachineConfigPool | undefined,
  ): Promise<number | undefined> {
    if (outcomeOf(build) !== 'Succeeded') return undefined;
    const { caches, now, client, signal } = this.#options;
    const least = pool === undefined ? undefined : settingOf(pool, 'holds').vulnerabilities;
    const name = config.spec.machineConfigPool.name;
    const nodes = caches.nodes.list().filter(({ spec }) => spec.pool.name === name);
    const builds = caches.builds
      .list()
      .filter(({ spec }) => spec.machineOSConfig.name === config.metadata.name);
    const before = build.status?.vulnerabilities ?? [];
    const pairs = basePairs(build, nodes, builds).map((pair) => ({
      pair,
      known: before.find(({ from, to }) => from === pair.from && to === pair.to),
    }));
    const isAnyDue = pairs.some(({ known }) => isDue(known, least, now().getTime()));
    const entries = isAnyDue
      ? await this.#readAll(config, pairs, least)
      : pairs.flatMap(({ known }) => known ?? []);
    if (isAnyDue)
      await updateStatus(
        client,
        MachineOSBuilds,
        build,
        ({ status }) => ({ ...status, vulnerabilities: entries }),
        { signal },
      );
    return entries.some((entry) => holdsBack(entry, least)) ? AGAIN_MS : undefined;
  }

  async #readAll(
    config: MachineOSConfig,
    pairs: readonly { readonly pair: BasePair; readonly known: BaseVulnerabilities | undefined }[],
    least: LeastSeverity | undefined,
  ): Promise<BaseVulnerabilities[]> {
    const { now, signal, log } = this.#options;
    const late = AbortSignal.any([signal, AbortSignal.timeout(DEADLINE_MS)]);
    const entries: BaseVulnerabilities[] = [];
    let client: RegistryClient | undefined;
    for (const { pair, known } of pairs) {
      if (known !== undefined && !isDue(known, least, now().getTime())) {
        entries.push(known);
        continue;
      }
      try {
        client ??= await this.#registry(config, late);
        entries.push(recordedVulnerabilities(pair, await this.#compare(client, pair, late), now()));
      } catch (error) {
        signal.throwIfAborted();
        const why = late.aborted ? `no answer within ${DEADLINE_MS / 1000} s` : errorMessage(error);
        log.warn({ from: pair.from, to: pair.to, err: error }, 'reports of vulnerabilities not read');
        entries.push(recordedVulnerabilities(pair, { unread: why }, now()));
      }
    }
    return entries;
  }

  async #compare(client: RegistryClient, { from, to, architecture }: BasePair, signal: AbortSignal) {
    const named = (name: string) => ({ name, reference: parseReference(name) });
    const options = { architecture: architecture ?? this.#options.architecture };
    return (await compareImages(client, [named(from), named(to)], options, signal)).diff;
  }

  async #registry({ spec }: MachineOSConfig, signal: AbortSignal): Promise<RegistryClient> {
    const { caches } = this.#options;
    const pool = spec.machineConfigPool.name;
    const names = [spec.baseImagePullSecret?.name, spec.renderedImagePushSecret?.name];
    const access = await readRegistryAccess(this.#options, { pool, names }, signal);
    const rendered = caches.machineConfigs.get(renderedConfigOf(caches, pool) ?? '');
    return createMirroredClient(access, { conf: renderedRegistries(rendered) });
  }
}
