import { by } from '../../../api/order.ts';
import { plural } from '../../../api/plural.ts';
import type { PageView, PolicyRow } from '../../model/view.ts';
import { hashOf } from '../route.ts';
import { Ago, useNow, useShortTime } from '../zone.tsx';
import { HoldList } from './holds.tsx';

/** The key of the row that the address leads to. */
interface Linked {
  readonly linked: string | undefined;
}

/** The number of rows that are shown of each list. */
const SHOWN = 50;

/** The holders of node leases, and the nodes that rollouts skip. */
export function LeaseTable({ leases, nodes, linked }: Pick<PageView, 'leases' | 'nodes'> & Linked) {
  const now = useNow(10_000);
  const at = useShortTime(now);
  const held = Object.values(leases).toSorted(by(({ node }) => node));
  const passedBy = Object.entries(nodes).filter(([, { obstacle }]) => obstacle !== undefined);
  return (
    <section id="leases" aria-labelledby="leases-title">
      <h2 id="leases-title">Leases and maintenance</h2>
      <div class="side-by-side">
        <div>
          <h3>Held leases</h3>
          {held.length === 0 ? <p class="quiet">No node lease is held.</p> : null}
          <ul class="plain">
            {held
              .filter(({ node }, index) => index < SHOWN || node === linked)
              .map(({ node, holder, reason, since, until, ours }) => (
                <li key={node} data-lease={node} class={node === linked ? 'selected' : ''}>
                  <NodeLink name={node} /> <span title={reason}>{ours ? 'this rollout' : holder}</span>
                  <span class="quiet">
                    {since === undefined ? null : (
                      <>
                        acquired <Ago time={since} now={now} />
                      </>
                    )}
                    {until === undefined ? '' : `, until ${at(until)}`}
                  </span>
                </li>
              ))}
          </ul>
          <More hidden={held.length - SHOWN} />
        </div>
        <div>
          <h3>Skipped by rollouts</h3>
          {passedBy.length === 0 ? <p class="quiet">No node is skipped.</p> : null}
          <ul class="plain">
            {passedBy.slice(0, SHOWN).map(([name, { obstacle, holds = [] }]) => (
              <li key={name}>
                <NodeLink name={name} />{' '}
                {holds.length === 0 ? <span>{obstacle}</span> : <HoldList holds={holds} now={now} />}
              </li>
            ))}
          </ul>
          <More hidden={passedBy.length - SHOWN} />
        </div>
      </div>
    </section>
  );
}

function NodeLink({ name }: { readonly name: string }) {
  return (
    <a href={hashOf({ kind: 'node', name })}>
      <code>{name}</code>
    </a>
  );
}

function More({ hidden }: { readonly hidden: number }) {
  return hidden > 0 ? <p class="quiet">and {plural(hidden, 'more node')}</p> : null;
}

/** The disruption policies in force: the admin's own, and the defaults folded. */
export function Policies({ policies, linked }: Pick<PageView, 'policies'> & Linked) {
  const rows = Object.values(policies).toSorted(by(({ subject }) => subject));
  const { admin = [], default: defaults = [] } = Object.groupBy(rows, ({ source }) => source);
  return (
    <section id="policies" aria-labelledby="policies-title">
      <h2 id="policies-title">Disruption policies</h2>
      <p class="quiet">
        What a change requires of a node. Any change that no policy covers requires a reboot.
      </p>
      {rows.length === 0 ? (
        <p class="quiet">The operator has not reported the effective policies yet.</p>
      ) : admin.length === 0 ? (
        <p>No admin has set a policy: the defaults apply.</p>
      ) : (
        <PolicyTable title="Set by an admin" rows={admin} linked={linked} />
      )}
      {defaults.length === 0 ? null : (
        <details open={defaults.some((row) => keyOf(row) === linked)}>
          <summary>{plural(defaults.length, 'default')}</summary>
          <PolicyTable title="Defaults" rows={defaults} linked={linked} />
        </details>
      )}
    </section>
  );
}

/** The key of a policy's row, which its address has. */
function keyOf({ kind, subject }: PolicyRow): string {
  return `${kind} ${subject}`;
}

interface PolicyTableProps extends Linked {
  readonly title: string;
  readonly rows: readonly PolicyRow[];
}

function PolicyTable({ title, rows, linked }: PolicyTableProps) {
  return (
    <table class="policies" aria-label={title}>
      <thead>
        <tr>
          <th scope="col">When this changes</th>
          <th scope="col">Actions</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={keyOf(row)} data-policy={keyOf(row)} class={keyOf(row) === linked ? 'selected' : ''}>
            <th scope="row">
              <code>{row.subject}</code>
            </th>
            <td>{row.actions}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
