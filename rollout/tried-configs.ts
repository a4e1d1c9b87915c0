import type { MachineConfig } from '../api/machine-config.ts';
import { isTried } from '../machineconfig/tried-config.ts';
import type { FreshCache } from './fresh-cache.ts';

/**
 * Which MachineConfigs are being tried, kept up to date by events. Every status of a pool lists them; in most clusters there
 * are none, among hundreds of MachineConfigs.
 */
export class TriedConfigs {
  readonly #cache: Pick<FreshCache<MachineConfig>, 'get' | 'onChange'>;
  readonly #names = new Set<string>();

  /** @param cache not started yet. */
  constructor(cache: Pick<FreshCache<MachineConfig>, 'get' | 'onChange'>) {
    this.#cache = cache;
    cache.onChange(({ type, object }) => {
      if (type !== 'DELETED' && isTried(object)) this.#names.add(object.metadata.name);
      else this.#names.delete(object.metadata.name);
    });
  }

  /** @returns those of all pools, as they were last seen or written: the operator itself ends a try. */
  list(): readonly MachineConfig[] {
    return [...this.#names].flatMap((name) => this.#cache.get(name) ?? []).filter(isTried);
  }
}
