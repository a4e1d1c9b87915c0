import type { NodeStateName, PageView } from '../model/view.ts';
import { count, STATE_WORDS, STATES } from './words.ts';

/** Nodes that are named; of more only the number is told. */
const NAMED = 3;

/**
 * What changed, for people who hear the page: nodes by the state they came into, and builds.
 *
 * @returns sentences; empty when nothing is worth telling.
 */
export function announce(before: PageView, after: PageView): string {
  return [...nodeNews(before, after), ...buildNews(before, after), ...poolNews(before, after)].join(' ');
}

function nodeNews(before: PageView, after: PageView): string[] {
  if (before.nodes === after.nodes) return [];
  const came = new Map<NodeStateName, string[]>();
  for (const [name, node] of Object.entries(after.nodes)) {
    const known = before.nodes[name];
    if (known === node || known === undefined || known.state === node.state) continue;
    const names = came.get(node.state) ?? [];
    names.push(name);
    came.set(node.state, names);
  }
  return STATES.flatMap((state) => {
    const names = came.get(state);
    if (names === undefined) return [];
    const who = names.length <= NAMED ? names.join(', ') : count(names.length, 'node');
    return [`${who}: ${STATE_WORDS[state]}.`];
  });
}

function buildNews(before: PageView, after: PageView): string[] {
  return Object.entries(after.builds).flatMap(([name, { state }]) =>
    before.builds[name]?.state === state ? [] : [`Build ${name}: ${state}.`],
  );
}

function poolNews(before: PageView, after: PageView): string[] {
  return Object.entries(after.pools).flatMap(([name, pool]) => {
    const known = before.pools[name];
    if (known === undefined || known.tone === pool.tone) return [];
    return pool.tone === 'settled' || pool.tone === 'trouble' ? [`Pool ${name}: ${pool.headline}.`] : [];
  });
}
