import { hashOf } from '../route.ts';
import { count } from '../words.ts';
import type { Member } from './cell-grid.tsx';

/** Drains that are named; of more only the number is shown. */
const NAMED = 3;

/** The pods and PodDisruptionBudgets that drains of a pool wait for. */
export function HeldDrains({ members }: { readonly members: readonly Member[] }) {
  const held = members.filter(([, { heldPods }]) => heldPods !== undefined);
  if (held.length === 0) return null;
  return (
    <ul class="held-drains">
      {held.slice(0, NAMED).map(([name, { heldPods = [] }]) => (
        <li key={name} class="held-drain">
          Drain of <a href={hashOf({ kind: 'node', name })}>{name}</a> waits for{' '}
          {heldPods.slice(0, NAMED).map(({ pod, why }, index) => (
            <span key={pod}>
              {index === 0 ? '' : '; '}pod <code>{pod}</code>: {why}
            </span>
          ))}
        </li>
      ))}
      {held.length > NAMED ? (
        <li class="held-drain">and {count(held.length - NAMED, 'more drain')}</li>
      ) : null}
    </ul>
  );
}
