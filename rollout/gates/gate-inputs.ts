import type { Hold, HoldState } from './hold.ts';
import type { TargetBases } from './vulnerabilities.ts';

/** What single gates ask about a pool, beside what every decision about it needs. */
export interface GateInputs {
  /**
   * Finds what the pool waits for of the pools that it depends on; only asked where a node could start. Absent if it
   * depends on none. The parameter: ms since the epoch.
   */
  readonly awaitedPools?: ((now: number) => Hold | undefined) | undefined;
  /** Asks whether alerts hold updates back; only where a node could start. Absent if the pool names none. */
  readonly alerts?: (() => HoldState) | undefined;
  /** The same of queries. */
  readonly queries?: (() => HoldState) | undefined;
  /** What the target's build records of its base images. Absent in standard mode. */
  readonly targetBases?: TargetBases | undefined;
  /**
   * Finds why a node that votes must not be disrupted now, while further nodes are about to be. Absent where no such
   * node could start or is being drained.
   */
  readonly quorum?: ((node: string, withoutThese: readonly string[]) => Hold | undefined) | undefined;
  /** Asks for a node's slot of the lock service; only where it could reboot now. Absent if the pool names none. */
  readonly fleetLock?: ((node: string) => HoldState) | undefined;
}
