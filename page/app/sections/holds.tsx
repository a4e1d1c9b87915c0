import type { HoldView } from '../../../view/schemas.ts';
import { formatHold } from '../../../view/words.ts';
import { useShortTime } from '../zone.tsx';

/** What holds a pool or a node, and maintenance windows, as badges: with who, until when and why. */
export function HoldList({ holds, now }: { readonly holds: readonly HoldView[]; readonly now: number }) {
  const at = useShortTime(now);
  if (holds.length === 0) return null;
  return (
    <ul class="holds" aria-label="Holds and windows">
      {holds.map((hold) => {
        const isWindow = hold.kind === 'window-open' || hold.kind === 'window-closed';
        return (
          <li
            key={`${hold.kind} ${hold.by}`}
            class={`hold ${hold.kind}`}
            title={isWindow ? hold.reason : undefined}
          >
            {formatHold(hold, at)}
          </li>
        );
      })}
    </ul>
  );
}
