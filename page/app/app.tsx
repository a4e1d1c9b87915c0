import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { errorMessage } from '../../api/error-message.ts';
import { type About, EMPTY_VIEW, type PageView } from '../model/view.ts';
import { Builds } from './builds/builds.tsx';
import { type Follower, follow, type PageConnection } from './connection/follow.ts';
import { forgetToken, redeemKey, SignIn, storedToken, storeToken } from './connection/sign-in.tsx';
import { NodesSection } from './nodes/nodes.tsx';
import type { Route } from './route.ts';
import { Header } from './sections/header.tsx';
import { LeaseTable, Policies } from './sections/tables.tsx';
import { Timeline } from './timeline/timeline.tsx';
import { useRoute } from './use-route.ts';
import { announce } from './words.ts';
import { useZone, Zone, ZoneChoice } from './zone.tsx';

/** The page: it follows one view, and its sections show the tables of the view. */
export function App() {
  const [view, setView] = useState<PageView>();
  const [connection, setConnection] = useState<PageConnection>({ kind: 'connecting' });
  const [attempt, setAttempt] = useState(0);
  const [about, setAbout] = useState<About>({});
  const [zone, zones, chooseZone] = useZone();
  const show = useFrames(setView);

  useEffect(() => {
    const stop = new AbortController();
    void connect({ onView: show, onAbout: setAbout, onConnection: setConnection }, stop.signal);
    return () => stop.abort();
    // Each attempt connects again, with another token.
  }, [attempt, show]);

  const tryAgain = useCallback((token: string) => {
    storeToken(token);
    setAttempt((count) => count + 1);
  }, []);

  if (connection.kind === 'refused') return <SignIn why={connection.why} onToken={tryAgain} />;
  return (
    <Zone.Provider value={zone}>
      <Header connection={connection} about={about} view={view ?? EMPTY_VIEW}>
        <ZoneChoice zone={zone} zones={zones} onChoose={chooseZone} />
      </Header>
      <Announcer view={view} />
      {view === undefined ? <p class="loading">Reading the cluster…</p> : <Sections view={view} />}
    </Zone.Provider>
  );
}

/** Follows the view with the tab's token. A key in the address is redeemed for one first. */
async function connect(
  { onView, onAbout, onConnection }: Omit<Follower, 'token'>,
  signal: AbortSignal,
): Promise<void> {
  try {
    await redeemKey();
  } catch (error) {
    // A used key is an error only in a tab without a token.
    if (storedToken() === undefined) {
      onConnection({ kind: 'refused', why: errorMessage(error) });
      return;
    }
  }
  const refused = (connection: PageConnection) => {
    if (connection.kind === 'refused') forgetToken();
    onConnection(connection);
  };
  await follow({ token: storedToken, onView, onAbout, onConnection: refused }, signal);
}

/** Draws several changes within a frame once. */
function useFrames(draw: (view: PageView) => void): (view: PageView) => void {
  const next = useRef<PageView | undefined>(undefined);
  return useCallback(
    (view: PageView) => {
      const waiting = next.current !== undefined;
      next.current = view;
      if (waiting) return;
      requestAnimationFrame(() => {
        const latest = next.current;
        next.current = undefined;
        if (latest !== undefined) draw(latest);
      });
    },
    [draw],
  );
}

/** A section is drawn again only when one of its tables has changed. */
function Sections({ view }: { readonly view: PageView }) {
  const { pools, nodes, plans, leases, builds, logs, policies, segments } = view;
  const { route, selected, select } = useRoute();
  const linked = (kind: Route['kind']) => (route?.kind === kind ? route.name : undefined);
  const [build, policy, lease] = [linked('build'), linked('policy'), linked('lease')];
  const drawnNodes = useMemo(
    () => <NodesSection {...{ pools, nodes, plans, leases, selected }} onSelect={select} />,
    [pools, nodes, plans, leases, selected, select],
  );
  const drawnTimeline = useMemo(() => <Timeline segments={segments} />, [segments]);
  const drawnBuilds = useMemo(
    () => <Builds builds={builds} logs={logs} linked={build} />,
    [builds, logs, build],
  );
  const drawnLeases = useMemo(
    () => <LeaseTable leases={leases} nodes={nodes} linked={lease} />,
    [leases, nodes, lease],
  );
  const drawnPolicies = useMemo(() => <Policies policies={policies} linked={policy} />, [policies, policy]);
  return (
    <main>
      {drawnNodes}
      {drawnTimeline}
      {drawnBuilds}
      {drawnLeases}
      {drawnPolicies}
    </main>
  );
}

/** ms between two announcements, so that a screen reader can finish the last one. */
const PAUSE_MS = 4_000;

/** Announces changes to screen readers; not visible. */
function Announcer({ view }: { readonly view: PageView | undefined }) {
  const [text, setText] = useState('');
  const announced = useRef<PageView | undefined>(undefined);
  const latest = useRef<PageView | undefined>(undefined);
  latest.current = view;
  // The state when the page was opened is not announced.
  announced.current ??= view;
  useEffect(() => {
    const timer = setInterval(() => {
      const [before, after] = [announced.current, latest.current];
      announced.current = after;
      if (before === undefined || after === undefined || before === after) return;
      const sentences = announce(before, after);
      if (sentences !== '') setText(sentences);
    }, PAUSE_MS);
    return () => clearInterval(timer);
  }, []);
  return (
    <div class="visually-hidden" role="status" aria-live="polite">
      {text}
    </div>
  );
}
