import type { PageView } from '../../model/view.ts';
import type { Connection } from '../connection/follow.ts';

const WORDS: Readonly<Record<Connection['kind'], string>> = {
  connecting: 'Connecting',
  live: 'Live',
  lost: 'Reconnecting',
  refused: 'Refused',
};

/** The cluster, the state of the connection, and remarks on the whole view. */
export function Header({
  connection,
  remarks,
}: {
  readonly connection: Connection;
  readonly remarks: PageView['remarks'];
}) {
  const lines = [
    ...(connection.kind === 'lost' ? [`Connection lost: ${connection.why}. Reconnecting.`] : []),
    ...Object.values(remarks).map(({ text }) => text),
  ];
  return (
    <>
      <header class="top">
        <a class="skip" href="#nodes">
          Skip to the nodes
        </a>
        <h1>Shale</h1>
        <nav aria-label="Sections">
          <a href="#nodes">Nodes</a>
          <a href="#timeline">Timeline</a>
          <a href="#builds">Builds</a>
          <a href="#leases">Leases</a>
          <a href="#policies">Policies</a>
        </nav>
        <p class={`connection ${connection.kind}`}>{WORDS[connection.kind]}</p>
      </header>
      {lines.length === 0 ? null : (
        <div class="remarks" role="alert">
          {lines.map((line) => (
            <p key={line}>{line}</p>
          ))}
        </div>
      )}
    </>
  );
}
