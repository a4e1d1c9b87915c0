import { signingKeysVersion } from '../../api/image-signing.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { MACHINE_CONFIGURATION, SIGNING_KEYS_CONFIG_MAP } from '../../api/names.ts';
import { byCodeUnits } from '../../api/order.ts';
import { storageOverrides } from '../../disruption/settings.ts';
import {
  type ComparedConfigs,
  reconcilability,
  type WhyIrreconcilable,
} from '../../predict/node/irreconcilable-nodes.ts';
import type { Caches } from '../caches.ts';
import type { RolloutOptions } from '../options.ts';
import type { PoolRules } from '../pools/pool-observation.ts';

export interface RulesParts {
  readonly caches: Pick<Caches, 'machineConfigs' | 'machineConfigurations' | 'signingKeys'>;
  readonly options: Pick<RolloutOptions, 'namespace' | 'rendering' | 'hosts'>;
}

/** Observes what of the cluster is in force for the nodes of a pool. */
export class RulesObserver {
  readonly #parts: RulesParts;
  #compared: { readonly key: string; readonly configs: ComparedConfigs } = {
    key: '',
    configs: new WeakMap(),
  };

  constructor(parts: RulesParts) {
    this.#parts = parts;
  }

  /** @param policyDigest of the disruption policies in force for the pool. */
  rulesOf(pool: MachineConfigPool, policyDigest: string | undefined): PoolRules {
    const { caches, options } = this.#parts;
    const keys = caches.signingKeys.get(SIGNING_KEYS_CONFIG_MAP, options.namespace);
    return {
      policyDigest,
      imageSigningKeys: keys === undefined ? undefined : signingKeysVersion(keys.data ?? {}),
      whyIrreconcilable: this.#reconcilability(pool),
    };
  }

  #reconcilability({ spec }: MachineConfigPool): WhyIrreconcilable {
    const { caches, options } = this.#parts;
    const { name: rendered, source = [] } = spec.configuration ?? {};
    const overrides = storageOverrides(caches.machineConfigurations.get(MACHINE_CONFIGURATION)?.spec);
    const inputs = {
      configOf: (name: string) => caches.machineConfigs.get(name),
      // Of an earlier rendering it is not recorded what it was rendered from.
      sourcesOf: (name: string) =>
        name === rendered ? source.flatMap((each) => caches.machineConfigs.get(each.name ?? '') ?? []) : [],
      limits: options.rendering.limits,
      nodeUser: options.hosts.nodeUser,
      overrides,
    };
    const key = [...overrides].sort(byCodeUnits).join();
    // What was compared under other overrides says nothing.
    if (this.#compared.key !== key) this.#compared = { key, configs: new WeakMap() };
    return reconcilability(inputs, this.#compared.configs);
  }
}
