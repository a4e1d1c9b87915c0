import type { DisruptionAction } from '../../api/disruption-action.ts';
import type { NodePorts } from '../host/node-ports.ts';
import type { Current } from '../records/current.ts';
import type { ActionLimits } from './action-limits.ts';

/** What carrying out an update needs. */
export interface UpdateContext {
  readonly ports: NodePorts;
  readonly current: Current | undefined;
  /**
   * An update before may have got any way: what the disk has is brought to the target without asking whether it is as
   * the record says.
   */
  readonly again: boolean;
  readonly actionLimits: ActionLimits;
  /** Called, and waited for, once a config's files are written. */
  readonly afterWriting: () => Promise<void>;
  /** Called, and waited for, before each action. */
  readonly beforeAction: (action: DisruptionAction) => Promise<void>;
  readonly signal: AbortSignal;
}

/** How one mode brings content to the running root. */
export interface LiveWay {
  apply(): Promise<void>;
  /** @returns the paths that are not as wanted. */
  differing(): Promise<readonly string[]>;
}

/** The running system was changed, and only a reboot can bring it to the target. */
export class LiveUpdateFailed extends Error {
  override readonly name = 'LiveUpdateFailed';
}

/** Something differs from what the update was to bring about. */
export class NotAsWanted extends Error {
  override readonly name = 'NotAsWanted';

  /** @param paths what differs, at least one. */
  constructor(paths: readonly string[]) {
    const shown = paths.slice(0, 5).join(', ');
    const more = paths.length > 5 ? ` and ${paths.length - 5} more` : '';
    super(`differs from the target after the update: ${shown}${more}`);
  }
}

/**
 * Does what changes the running system.
 *
 * @throws LiveUpdateFailed for whatever goes wrong; the signal's reason when the daemon was told to end.
 */
export async function orOnlyByReboot(signal: AbortSignal, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (cause) {
    signal.throwIfAborted();
    throw new LiveUpdateFailed(cause instanceof Error ? cause.message : String(cause), { cause });
  }
}
