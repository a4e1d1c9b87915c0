import type { LeaseRow, NodeRow, Table } from '../../model/view.ts';
import { useNow } from '../clock.ts';
import { ago, count } from '../words.ts';

/** Rows that are shown of each list; a maintenance of a whole rack is more than one reads. */
const SHOWN = 50;

/** Who may disrupt which node now, and which nodes rollouts leave alone. */
export function Leases({
  leases,
  nodes,
}: {
  readonly leases: Table<LeaseRow>;
  readonly nodes: Table<NodeRow>;
}) {
  const now = useNow(10_000);
  const held = Object.values(leases).toSorted((a, b) => (a.node < b.node ? -1 : 1));
  const passedBy = Object.entries(nodes).filter(([, { maintenance }]) => maintenance !== undefined);
  return (
    <section id="leases" aria-labelledby="leases-title">
      <h2 id="leases-title">Leases and maintenance</h2>
      <div class="side-by-side">
        <div>
          <h3>Held leases</h3>
          {held.length === 0 ? <p class="quiet">No node lease is held.</p> : null}
          <ul class="plain">
            {held.slice(0, SHOWN).map(({ node, holder, since, ours }) => (
              <li key={node}>
                <code>{node}</code> <span>{ours ? 'this rollout' : holder}</span>
                <span class="quiet">{since === undefined ? '' : `acquired ${ago(since, now)}`}</span>
              </li>
            ))}
          </ul>
          <More hidden={held.length - SHOWN} />
        </div>
        <div>
          <h3>In maintenance</h3>
          {passedBy.length === 0 ? <p class="quiet">No node is in maintenance.</p> : null}
          <ul class="plain">
            {passedBy.slice(0, SHOWN).map(([name, { maintenance }]) => (
              <li key={name}>
                <code>{name}</code> <span>{maintenance}</span>
              </li>
            ))}
          </ul>
          <More hidden={passedBy.length - SHOWN} />
        </div>
      </div>
    </section>
  );
}

function More({ hidden }: { readonly hidden: number }) {
  return hidden > 0 ? <p class="quiet">and {count(hidden, 'more node')}</p> : null;
}
