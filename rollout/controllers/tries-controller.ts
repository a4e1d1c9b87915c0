import type { TryRequest } from '../../api/annotation-requests.ts';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import { annotations } from '../../api/names.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { done, type Result, requeueAfter } from '../../cluster/controller.ts';
import type { EventRecorder } from '../../cluster/events.ts';
import { decideTry } from '../../machineconfig/tried-config.ts';
import type { Caches } from '../caches.ts';

export interface TriesControllerParts {
  readonly client: ApiClient;
  readonly caches: Pick<Caches, 'machineConfigs'>;
  readonly events: EventRecorder;
  /** ms since the epoch. */
  readonly now: () => number;
}

/** ms; no timer of Node's is longer, and a clock that is set is noticed. */
const LOOK_AGAIN = 60_000;

/** Undoes changes of MachineConfigs that nobody has confirmed in time (`shale try`). */
export class TriesController {
  readonly #parts: TriesControllerParts;

  constructor(parts: TriesControllerParts) {
    this.#parts = parts;
  }

  /** @param name of a MachineConfig. @throws ApiError, a conflict where somebody edits or confirms at that moment. */
  async reconcile(name: string, signal: AbortSignal): Promise<Result> {
    const { client, caches, events, now } = this.#parts;
    const config = caches.machineConfigs.get(name);
    if (config === undefined) return done;
    const decision = decideTry(config, now());
    switch (decision.kind) {
      case 'none':
        return done;
      case 'waits':
        return requeueAfter(Math.min(LOOK_AGAIN, Math.max(1, decision.until - now())));
      case 'unreadable':
        events.warning(
          config,
          'ChangeKept',
          `The change can't be undone, because the annotation ${annotations.try} can't be read: ${decision.why}`,
        );
        return done;
      case 'edited':
        await this.#keep(config, signal);
        events.warning(
          config,
          'ChangeKept',
          `The change${whose(decision.request)} is not undone, because somebody has edited ${decision.why} since`,
        );
        return done;
      case 'restore':
        caches.machineConfigs.remember(await client.replace(MachineConfigs, decision.to, { signal }));
        events.normal(
          config,
          'ChangeUndone',
          `Restored what it was before the change${whose(decision.request)}`,
        );
        return done;
      case 'delete': {
        const { uid, resourceVersion = '' } = config.metadata;
        const preconditions = uid === undefined ? { resourceVersion } : { uid, resourceVersion };
        await client.delete(MachineConfigs, name, { preconditions, signal });
        events.normal(
          config,
          'ChangeUndone',
          `Deleted, as it did not exist before the change${whose(decision.request)}`,
        );
        return done;
      }
    }
  }

  /** The change is nobody's to undo any more. */
  async #keep({ metadata: { name, resourceVersion } }: MachineConfig, signal: AbortSignal): Promise<void> {
    const { client, caches } = this.#parts;
    const body = { metadata: { resourceVersion, annotations: { [annotations.try]: null } } };
    const kept = await client.patch(MachineConfigs, name, { type: 'merge', body }, { signal });
    caches.machineConfigs.remember(kept);
  }
}

function whose({ by, until }: TryRequest): string {
  return `${by === '' ? '' : ` of ${by}`} that was to be confirmed until ${until}`;
}
