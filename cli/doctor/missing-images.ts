import { annotations } from '../../api/names.ts';
import { noun } from '../../api/plural.ts';
import { repositoryOf } from '../../api/references.ts';
import { parseReference } from '../../image/reference.ts';
import { manifestAt } from '../../image/referrers.ts';
import { ContentError, RegistryError } from '../../image/registry/registry-error.ts';
import { nodesOfPool, type ObservedCluster } from '../../view/observed-cluster.ts';
import { openRegistry, type RegistryTrial } from './check-registries.ts';
import { type Finding, findings, namedNodes } from './finding.ts';
import type { RegistryTarget } from './registry-targets.ts';

/** ms; images of a registry that takes longer are not looked up. */
const DEADLINE_MS = 30_000;
/** Nodes named in a finding; the others are counted. */
const NAMED_NODES = 3;

/** An image that nodes of a pool need. */
export interface NeededImage {
  readonly image: string;
  /** Nodes that run it. */
  readonly running: readonly string[];
  /** Nodes that are assigned to it and run something else. */
  readonly coming: readonly string[];
  /** Whether new nodes of the pool boot it. */
  readonly forNewNodes: boolean;
}

/**
 * @returns the images of a pool's repository that its nodes run or are assigned to, and the one that new nodes boot.
 */
export function neededImages(
  { pool: name, push }: Pick<RegistryTarget, 'pool' | 'push'>,
  cluster: Pick<ObservedCluster, 'machineConfigNodes' | 'pools'>,
): readonly NeededImage[] {
  const nodes = nodesOfPool(cluster, name);
  const boots = cluster.pools.find(({ metadata }) => metadata.name === name)?.status?.bootImage?.image;
  const images = new Set([
    ...nodes.flatMap(({ spec, status }) => [
      spec.configImage?.desiredImage,
      status?.configImage?.currentImage,
    ]),
    boots,
  ]);
  return [...images]
    .filter((image) => image !== undefined)
    .filter((image) => push !== undefined && repositoryOf(image) === repositoryOf(push))
    .toSorted()
    .map((image) => {
      const running = nodes.filter(({ status }) => status?.configImage?.currentImage === image);
      const coming = nodes.filter((node) => node.spec.configImage?.desiredImage === image);
      const names = (of: typeof nodes) => of.map(({ metadata }) => metadata.name).toSorted();
      return {
        image,
        running: names(running),
        coming: names(coming.filter((node) => !running.includes(node))),
        forNewNodes: image === boots,
      };
    });
}

/**
 * Looks the images up that nodes need: one that somebody deleted in the registry is missed only when a node has to pull
 * it.
 *
 * @throws SecretError, ApiError, CommandError
 */
export async function findMissing(
  targets: readonly RegistryTarget[],
  cluster: ObservedCluster,
  trial: RegistryTrial,
): Promise<Finding[]> {
  return (await Promise.all(targets.map((target) => inPool(target, cluster, trial)))).flat();
}

async function inPool(
  target: RegistryTarget,
  cluster: ObservedCluster,
  trial: RegistryTrial,
): Promise<Finding[]> {
  const { failure } = findings(`registries, from ${trial.from}`);
  const needed = neededImages(target, cluster);
  if (needed.length === 0) return [];
  const signal = AbortSignal.any([trial.signal, AbortSignal.timeout(DEADLINE_MS)]);
  try {
    const registry = await openRegistry(target, trial);
    const missing: NeededImage[] = [];
    for (const each of needed) {
      const isThere = await manifestAt(registry, parseReference(each.image), signal);
      if (isThere === undefined) missing.push(each);
    }
    return missing.map((each) => failure(`pool ${target.pool}: ${formatMissing(each)}`, remedy(target.pool)));
  } catch (error) {
    trial.signal.throwIfAborted();
    // That the registry can't be read is reported already.
    if (error instanceof RegistryError || error instanceof ContentError || signal.aborted) return [];
    throw error;
  }
}

/** @returns what is missing and who needs it, as a sentence. */
export function formatMissing({ image, running, coming, forNewNodes }: NeededImage): string {
  const [runs, comes] = [namedNodes(running, NAMED_NODES), namedNodes(coming, NAMED_NODES)];
  const who = [
    runs && `${runs} still ${noun(running.length, 'runs', 'run')} it`,
    comes && `${comes} ${noun(coming.length, 'is', 'are')} to run it and can't pull it`,
    forNewNodes && 'new nodes are to boot it',
  ].filter(Boolean);
  return `${image} is gone from the registry: ${who.join('; ')}`;
}

function remedy(pool: string): string {
  return `build it again: kubectl annotate machineosconfig ${pool} ${annotations.rebuild}=VALUE --overwrite, with a value that it has not had`;
}
