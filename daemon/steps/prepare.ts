import type { Preparation } from './preparation.ts';
import { prepareLayered } from './prepare-layered.ts';
import { prepareStandard } from './prepare-standard.ts';
import type { Target } from './target.ts';
import type { PreparedUpdate } from './update.ts';

/**
 * Brings a target to the disk and works out what it asks of the node. Not disruptive, and harmless to repeat.
 *
 * @throws PrepareRefused, ApiError, and what OsBackend.stage throws.
 */
export function prepare(preparation: Preparation, target: Target): Promise<PreparedUpdate> {
  return target.mode === 'Layered'
    ? prepareLayered(preparation, target)
    : prepareStandard(preparation, target);
}
