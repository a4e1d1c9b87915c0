import type { HoldState, StartHold } from '../gates/hold.ts';
import { isNew } from '../pools/node-availability.ts';
import type { NodeState } from '../pools/node-state.ts';

interface MonitoredWords {
  readonly what: string;
  readonly unknown: string;
  readonly reasons: Readonly<Record<'holds' | 'unknown', string>>;
}

/**
 * A new node disturbs no pod, and more capacity may be what ends the alert.
 *
 * @param look is called only where a node waits for the answer.
 */
export function monitored(
  nodes: readonly NodeState[],
  look: (() => HoldState) | undefined,
  { what, unknown, reasons }: MonitoredWords,
): StartHold | undefined {
  const waiting = nodes.filter((node) => !isNew(node));
  const state = waiting.length === 0 ? undefined : look?.();
  if (state === undefined || state.kind === 'clear') return undefined;
  const held = new Set(waiting.map(({ name }) => name));
  const message = (cause: string) => `updates wait for ${what}: ${cause}`;
  switch (state.kind) {
    case 'asking':
      return { hold: undefined, held };
    case 'holds':
      return { hold: { reason: reasons.holds, message: message(state.why) }, held };
    case 'unknown':
      return { hold: { reason: reasons.unknown, message: message(`${unknown}: ${state.why}`) }, held };
  }
}
