import type { Random } from '../world/random.ts';
import type { World } from '../world/world.ts';
import type { Admin } from './admin.ts';

/** What faults are done to. */
export interface Stage {
  readonly world: World;
  readonly admin: Admin;
}

/** Names that faults are drawn by. They are known before the campaign begins, so that a seed always draws the same. */
export interface Cast {
  /** Nodes with an operating system. */
  readonly machines: readonly string[];
  /** Nodes without one; none in most campaigns. */
  readonly scripted: readonly string[];
  readonly pools: readonly string[];
  /** Longest that a server is away, in ms. */
  readonly longestMs: number;
  /** Longest that a process is paused, in ms. */
  readonly longestPauseMs: number;
}

/** One fault, drawn and not done yet. */
export interface Fault {
  readonly kind: string;
  /** The process or node that it affects. */
  readonly subject: string;
  readonly details?: string;
  /** ms until it ends; absent: it is over at once. */
  readonly lastsMs?: number;
  /** @returns what it came to, where that isn't known before. */
  begin(stage: Stage): Promise<string | undefined>;
  end?(stage: Stage): Promise<void>;
}

/** A kind of faults, of which one is drawn at a time. */
export interface FaultKind {
  /** How often it is drawn, compared with others. */
  readonly weight: number;
  draw(random: Random, cast: Cast): Fault;
}

/** @returns a fault, by the weights of the kinds. */
export function drawFault(kinds: readonly FaultKind[], random: Random, cast: Cast): Fault {
  const total = kinds.reduce((sum, { weight }) => sum + weight, 0);
  let left = random.next() * total;
  for (const kind of kinds) {
    left -= kind.weight;
    if (left < 0) return kind.draw(random, cast);
  }
  throw new Error('no kinds of faults');
}
