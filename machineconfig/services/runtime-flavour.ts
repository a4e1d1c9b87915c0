import { fieldOf } from '../../api/pool-settings/read-settings.ts';
import type { SettingValues } from '../../api/pool-settings/table.ts';

/** The container runtimes whose drop-ins Shale writes. */
export const runtimeFlavours = ['cri-o', 'containerd'] as const;
export type RuntimeFlavour = (typeof runtimeFlavours)[number];

const FIELD = fieldOf('containerRuntime');

export type PoolRuntime =
  | { readonly ok: true; readonly flavour: RuntimeFlavour }
  /** A clause. */
  | { readonly ok: false; readonly why: string };

/** What tells the container runtime of a pool. */
export interface RuntimeEvidence {
  /** The setting of the pool, which decides where there is one. */
  readonly stated: SettingValues['containerRuntime'];
  /** `status.nodeInfo.containerRuntimeVersion` of its nodes, such as `cri-o://1.34.1`; undefined for a node without. */
  readonly versions: readonly (string | undefined)[];
}

/**
 * Decides which container runtime the nodes of a pool have. A drop-in for another one would be ignored without a word,
 * so nothing is guessed.
 *
 * @param pools of the nodes that get the pool's drop-ins: the pool first, then those that inherit from it.
 */
export function runtimeOf(pools: readonly [RuntimeEvidence, ...RuntimeEvidence[]]): PoolRuntime {
  const [{ stated }] = pools;
  if (stated !== undefined) return statedFlavour(stated);
  const flavours = pools.flatMap((pool) => {
    const own = pool.stated === undefined ? undefined : statedFlavour(pool.stated);
    return own?.ok === true ? [own.flavour] : pool.versions.map((version) => version?.split('://')[0]);
  });
  const [first, ...others] = [...new Set(flavours.filter((name) => name !== undefined))].sort();
  const hint = `${FIELD} of the pool can name it`;
  if (first === undefined)
    return { ok: false, why: `no node has reported its container runtime yet; ${hint}` };
  if (others.length > 0) {
    const names = [first, ...others].join(', ');
    return {
      ok: false,
      why: `its nodes have different container runtimes (${names}); expected the same on all`,
    };
  }
  const flavour = runtimeFlavours.find((name) => name === first);
  if (flavour === undefined)
    return { ok: false, why: `its nodes run ${first}; expected ${runtimeFlavours.join(' or ')}` };
  return { ok: true, flavour };
}

function statedFlavour(stated: RuntimeFlavour | 'unreadable'): PoolRuntime {
  if (stated !== 'unreadable') return { ok: true, flavour: stated };
  return { ok: false, why: `its ${FIELD} can't be read; expected ${runtimeFlavours.join(' or ')}` };
}
