import type { MachineOSConfig } from '../../api/machine-os-config.ts';
import { type Result, requeueAfter } from '../../cluster/controller.ts';
import type { FailingSteps } from '../../cluster/failing-steps.ts';
import type { Engines } from '../engine/engines.ts';

export interface LeftoverEnginesParts {
  readonly engines: Pick<Engines, 'removeLeftovers'>;
  readonly machineOSConfigs: () => readonly MachineOSConfig[];
  readonly failing: Pick<FailingSteps, 'failed' | 'over'>;
}

const DOING = 'deleting container engines that no build uses';
/** ms from one look to the next: an engine that a build could not delete is found this late. */
export const LOOK_FOR_ENGINES_MS = 300_000;

/**
 * Deletes the engines of an earlier builder, and those that this one could not delete. What can't be deleted ends by
 * itself at its deadline, and keeps no build from starting unless it uses up the quota of the namespace, which all
 * pools share: so it is reported on every MachineOSConfig.
 */
export class LeftoverEngines {
  readonly #parts: LeftoverEnginesParts;

  constructor(parts: LeftoverEnginesParts) {
    this.#parts = parts;
  }

  /** @throws what fails, and takes it down. */
  async reconcile(signal: AbortSignal): Promise<Result> {
    const { engines, machineOSConfigs, failing } = this.#parts;
    try {
      await engines.removeLeftovers(signal);
    } catch (error) {
      signal.throwIfAborted();
      for (const config of machineOSConfigs()) failing.failed(config, DOING, error);
      throw error;
    }
    for (const config of machineOSConfigs()) failing.over(config, DOING);
    return requeueAfter(LOOK_FOR_ENGINES_MS);
  }
}
