import { by } from '../../../api/order.ts';
import type { LeaseRow, NodeRow, PolicyRow, Table } from '../../model/view.ts';
import { useNow } from '../clock.ts';
import { ago, count } from '../words.ts';

/** The number of rows that are shown of each list. */
const SHOWN = 50;

/** The holders of node leases, and the nodes that rollouts skip. */
export function Leases({
  leases,
  nodes,
}: {
  readonly leases: Table<LeaseRow>;
  readonly nodes: Table<NodeRow>;
}) {
  const now = useNow(10_000);
  const held = Object.values(leases).toSorted(by(({ node }) => node));
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

/** The disruption policies in force, the admin's own first. */
export function Policies({ policies }: { readonly policies: Table<PolicyRow> }) {
  const rows = Object.values(policies).toSorted(
    by(
      ({ source }) => source,
      ({ subject }) => subject,
    ),
  );
  return (
    <section id="policies" aria-labelledby="policies-title">
      <h2 id="policies-title">Disruption policies</h2>
      <p class="quiet">
        What a change requires of a node. Any change that no policy covers requires a reboot.
      </p>
      {rows.length === 0 ? (
        <p class="quiet">The operator has not reported the effective policies yet.</p>
      ) : (
        <div class="wide">
          <table>
            <thead>
              <tr>
                <th scope="col">When this changes</th>
                <th scope="col">Actions</th>
                <th scope="col">Source</th>
              </tr>
            </thead>
            <tbody>
              {rows.map(({ kind, subject, actions, source }) => (
                <tr key={`${kind} ${subject}`}>
                  <th scope="row">
                    <code>{subject}</code>
                  </th>
                  <td>{actions}</td>
                  <td>{source === 'admin' ? <strong>admin</strong> : 'default'}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
