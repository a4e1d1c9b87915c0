import type { PolicyRow, Table } from '../../model/view.ts';

/** The disruption policies in force, the admin's first. */
export function Policies({ policies }: { readonly policies: Table<PolicyRow> }) {
  const rows = Object.values(policies).toSorted(
    (a, b) => a.source.localeCompare(b.source, 'en') || a.subject.localeCompare(b.subject, 'en'),
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
