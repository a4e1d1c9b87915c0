import type { ConfigMap } from '../api/kubernetes.ts';
import { SWITCH_CONFIG_MAP } from '../api/names.ts';
import type { KubernetesObject } from '../api/object.ts';
import type { Informer } from '../cluster/informer.ts';
import { readSwitch, takesPool } from './switch.ts';

/**
 * @param switches the cache of the layering switch.
 * @param namespace where Shale runs.
 * @returns what finds whether the switch layers a pool, as it is set at that moment.
 */
export function switchCoverage(
  switches: Pick<Informer<ConfigMap>, 'get'>,
  namespace: string,
): (pool: Pick<KubernetesObject, 'metadata'>) => 'covered' | 'excluded' | 'unreadable' {
  return (pool) => {
    const state = readSwitch(switches.get(SWITCH_CONFIG_MAP, namespace));
    switch (state.kind) {
      case 'off':
        return 'excluded';
      case 'on':
        return takesPool(state.settings, pool) ? 'covered' : 'excluded';
      case 'invalid':
        return 'unreadable';
    }
  };
}
