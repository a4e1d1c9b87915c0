import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import type { Kind, KubernetesObject } from '../../api/object.ts';
import { type ClusterFlags, connect } from '../command-line/cluster-access.ts';
import { isTried } from '../try/decide-try.ts';
import type { NameKind } from './command-tree.ts';

/** ms; a shell that completes a word waits for it. */
const REQUEST_MS = 3_000;

/**
 * @param words of the command line that is being typed; its flags say which cluster and as whom.
 * @returns names in the cluster, sorted for each kind; none where it can't be asked: a completion is no place for an
 *   error.
 */
export async function namesOrNone(kind: NameKind, words: readonly string[]): Promise<readonly string[]> {
  try {
    const client = await connect({ ...clusterFlagsIn(words), requestTimeout: REQUEST_MS });
    const signal = AbortSignal.timeout(REQUEST_MS);
    const named = async <T extends KubernetesObject>(of: Kind<T>, isCandidate: (object: T) => boolean) =>
      (await client.list(of, { signal })).items
        .filter(isCandidate)
        .map(({ metadata }) => metadata.name)
        .toSorted();
    const pools = () => named(MachineConfigPools, () => true);
    const nodes = () => named(MachineConfigNodes, () => true);
    switch (kind) {
      case 'pools':
        return await pools();
      case 'nodes':
        return await nodes();
      case 'pools-and-nodes':
        return [...(await pools()), ...(await nodes())];
      case 'tried-pools':
        return await named(MachineConfigPools, isTried);
    }
  } catch {
    return [];
  }
}

/** @returns the flags of the cluster among words: `--context x`, `--context=x`. */
export function clusterFlagsIn(words: readonly string[]): Partial<ClusterFlags> {
  const valuesOf = (flag: string): readonly string[] =>
    words.flatMap((word, index) => {
      if (word.startsWith(`${flag}=`)) return [word.slice(flag.length + 1)];
      const next = words[index + 1];
      return word === flag && next !== undefined && next !== '' ? [next] : [];
    });
  const last = (flag: string) => valuesOf(flag).at(-1);
  const [kubeconfig, context, as] = [last('--kubeconfig'), last('--context'), last('--as')];
  const asGroup = valuesOf('--as-group');
  return {
    kubeconfig,
    context,
    ...(as === undefined ? {} : { as, asGroup }),
  };
}
