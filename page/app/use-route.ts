import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { hashOf, type Route, routeOf } from './route.ts';

/** ms; browsers limit how often an address may change, and arrow keys repeat faster. */
const SETTLE_MS = 300;

/** What the address leads to, and the selected node. */
export interface Place {
  readonly route: Route | undefined;
  readonly selected: string | undefined;
  /** Selects a node, and makes the address lead to it. */
  readonly select: (name: string) => void;
}

/** Follows the address: an address that leads to something shows it, and the selected node is in the address. */
export function useRoute(): Place {
  const [route, setRoute] = useState(() => routeOf(location.hash));
  const [selected, setSelected] = useState(() => nodeOf(routeOf(location.hash)));
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);

  useEffect(() => {
    const onChange = () => {
      clearTimeout(timer.current);
      const next = routeOf(location.hash);
      setRoute(next);
      setSelected((before) => nodeOf(next) ?? before);
      reveal(next);
    };
    addEventListener('hashchange', onChange);
    return () => removeEventListener('hashchange', onChange);
  }, []);
  // The sections are drawn for the first time together with this.
  useEffect(() => reveal(routeOf(location.hash)), []);

  const select = useCallback((name: string) => {
    setSelected(name);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      history.replaceState(null, '', hashOf({ kind: 'node', name }));
    }, SETTLE_MS);
  }, []);
  return { route, selected, select };
}

function nodeOf(route: Route | undefined): string | undefined {
  return route?.kind === 'node' ? route.name : undefined;
}

/** Scrolls to what a route leads to, once it is drawn, and moves the focus there for keyboards and screen readers. */
function reveal(route: Route | undefined): void {
  if (route === undefined) return;
  requestAnimationFrame(() => {
    const row = document.querySelector<HTMLElement>(`[data-${route.kind}="${CSS.escape(route.name)}"]`);
    const shown = route.kind === 'node' ? (document.querySelector<HTMLElement>('.detail') ?? row) : row;
    shown?.scrollIntoView({ block: route.kind === 'node' ? 'nearest' : 'start' });
    const stop = route.kind === 'node' ? row : row?.querySelector<HTMLElement>('a, button');
    stop?.focus({ preventScroll: true });
  });
}
