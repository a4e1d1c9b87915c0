import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import type { About, PageView } from '../../model/view.ts';
import type { PageConnection } from '../connection/follow.ts';
import { SearchBox } from '../search/search-box.tsx';
import { headerState } from '../words.ts';
import { useNow, useShortTime } from '../zone.tsx';

interface HeaderProps {
  readonly connection: PageConnection;
  readonly about: About;
  readonly view: PageView;
  /** The choice of the time zone. */
  readonly children: ComponentChildren;
}

/** The cluster and the viewer, the state of the connection, a search, and remarks on the whole view. */
export function Header({ connection, about, view, children }: HeaderProps) {
  const at = useShortTime(useNow(30_000));
  const { remarks } = view;
  const { cluster, user } = about;
  const state = headerState(connection.kind, remarks, at);
  useEffect(() => {
    document.title = cluster === undefined ? 'Shale' : `${cluster} · Shale`;
  }, [cluster]);
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
        <SearchBox view={view} />
        <p class={`connection ${state.kind}`}>{state.text}</p>
        <div class="about">
          {cluster === undefined ? null : (
            <span>
              Cluster <b title={cluster}>{cluster}</b>
            </span>
          )}
          {user === undefined ? null : (
            <span>
              User <b title={user}>{user}</b>
            </span>
          )}
          {children}
        </div>
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
