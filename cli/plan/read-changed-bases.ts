import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import type { MachineOSConfig } from '../../api/machine-os-config.ts';
import { keptTree, recordedBases } from '../../builder/steps/tree-of-base.ts';
import type { KeptTree } from '../../image/base/base-trees.ts';
import { diffContents } from '../../image/contents/diff-contents.ts';
import { summaryOf } from '../../image/contents/summary.ts';
import { goArchitecture } from '../../image/manifest.ts';
import { parseReference } from '../../image/reference.ts';
import type { RegistryClient } from '../../image/registry/registry-client.ts';
import type { BaseContents, ChangedBase } from '../../predict/image/base-change.ts';
import { layeredRenderings } from '../../predict/objects/offline-cluster.ts';
import type { PoolPrediction } from '../../predict/plan.ts';
import type { Change } from '../change/file-flags.ts';
import { READING_DEADLINE_MS, readBoth } from '../image/read-contents.ts';
import { askRegistry, type LookupAccess } from './pool-registry.ts';

/**
 * Reads what the new base images of pools bring, one after the other: from the records that builds of the cluster have
 * made, which statuses name by digest, and from the layers of images without one.
 *
 * @returns the predictions, with the contents of each base image that changes.
 * @throws {CommandError} for flags that can't be used; the reason of the signal.
 */
export async function readChangedBases(
  predictions: readonly PoolPrediction[],
  { after, live }: Pick<Change, 'after' | 'live'>,
  access: LookupAccess,
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
  for (const request of changed) {
    const { baseChange, architecture, pool } = request;
    const key = JSON.stringify([baseChange, architecture]);
    const known = answers.get(key);
    const base =
      known?.contents === undefined ? await readOne(request, live?.builds ?? [], access, signal) : known;
    answers.set(key, base);
    read.set(pool, base);
  }
  return predictions.map((prediction) => {
    const baseChange = read.get(prediction.plan.pool);
    if (baseChange === undefined || 'problems' in prediction.plan) return prediction;
    return { ...prediction, plan: { ...prediction.plan, baseChange } };
  });
}

interface ChangeRequest {
  readonly pool: string;
  readonly machineOSConfig: MachineOSConfig;
  readonly rendered: MachineConfig;
  readonly architecture: string;
  readonly baseChange: ChangedBase;
}

async function readOne(
  request: ChangeRequest,
  builds: readonly MachineOSBuild[],
  access: LookupAccess,
  signal: AbortSignal,
): Promise<ChangedBase> {
  const { pool, machineOSConfig, rendered, architecture, baseChange } = request;
  const { baseImagePullSecret, renderedImagePushSecret, renderedImagePushSpec } = machineOSConfig.spec;
  const own = builds.filter(({ spec }) => spec.machineOSConfig.name === machineOSConfig.metadata.name);
  const records = recordedBases(own, renderedImagePushSpec);
  const secrets = [baseImagePullSecret?.name, renderedImagePushSecret?.name];
  const answer = await askRegistry(
    { pool, secrets, rendered },
    access,
    signal,
    (client, bounded) => {
      const kept = records.map((record) => withFacts(keptTree(client, record, bounded)));
      return contentsOfChange(client, { baseChange, architecture, kept }, bounded);
    },
    READING_DEADLINE_MS,
  );
  return answer.kind === 'answer'
    ? { ...baseChange, contents: answer.value }
    : { ...baseChange, unread: answer.why };
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

async function contentsOfChange(
  client: RegistryClient,
  given: {
    readonly baseChange: ChangedBase;
    readonly architecture: string;
    readonly kept: readonly KeptTree[];
  },
  signal: AbortSignal,
): Promise<BaseContents> {
  const { baseChange, architecture, kept } = given;
  const named = (name: string) => ({ name, reference: parseReference(name) });
  const pair = [named(baseChange.from), named(baseChange.to)] as const;
  const [before, after] = await readBoth(client, pair, { architecture, kept }, signal);
  const diff = diffContents(before.contents, after.contents, { from: before.name, to: after.name });
  return { ...diff, summary: summaryOf(diff, true) };
}
