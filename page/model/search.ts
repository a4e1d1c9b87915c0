import type { BuildRow, HoldRow, NodeRow, NodeStateName, PageView } from './view.ts';

/** Something that a search found. */
export interface Finding {
  readonly kind: 'pool' | 'node' | 'build' | 'policy' | 'lease';
  /** The key of its row. */
  readonly name: string;
  /** What matched, if it is not the name. */
  readonly line?: string;
}

export interface Findings {
  /** The best ones. */
  readonly found: readonly Finding[];
  /** How many there are in all. */
  readonly total: number;
}

/** A row as text: what it is called, and everything else that is shown of it. */
interface Entry {
  readonly kind: Finding['kind'];
  readonly name: string;
  readonly texts: readonly (string | undefined)[];
}

const COLLATOR = new Intl.Collator('en', { numeric: true });
const KINDS: readonly Finding['kind'][] = ['pool', 'node', 'build', 'policy', 'lease'];

/**
 * Searches everything that the page shows: pools with the changes that they bring, nodes, builds with their logs, policies
 * and leases. Each word has to occur in a row; case doesn't matter.
 *
 * @param stateWord a state as the page shows it.
 * @param most findings to return.
 */
export function search(
  view: PageView,
  text: string,
  { stateWord, most }: { readonly stateWord: (state: NodeStateName) => string; readonly most: number },
): Findings {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return { found: [], total: 0 };
  const ranked = entriesOf(view, stateWord).flatMap((entry) => {
    const name = entry.name.toLowerCase();
    const texts = entry.texts.flatMap((line) => (line === undefined ? [] : [line]));
    const lower = texts.map((line) => line.toLowerCase());
    if (!words.every((word) => name.includes(word) || lower.some((line) => line.includes(word)))) return [];
    const others = words.filter((word) => !name.includes(word));
    const at = lower.findIndex((line) => others.some((word) => line.includes(word)));
    const line = others.length === 0 || at === -1 ? undefined : texts[at];
    const rank =
      name === words.join(' ') ? 0 : name.startsWith(words[0] ?? '') ? 1 : others.length === 0 ? 2 : 3;
    const finding: Finding = { kind: entry.kind, name: entry.name, ...(line === undefined ? {} : { line }) };
    return [{ rank, finding }];
  });
  const found = ranked
    .toSorted(
      (a, b) =>
        a.rank - b.rank ||
        KINDS.indexOf(a.finding.kind) - KINDS.indexOf(b.finding.kind) ||
        COLLATOR.compare(a.finding.name, b.finding.name),
    )
    .slice(0, most)
    .map(({ finding }) => finding);
  return { found, total: ranked.length };
}

function entriesOf(view: PageView, stateWord: (state: NodeStateName) => string): readonly Entry[] {
  const subjects = subjectsByPool(view);
  return [
    ...Object.entries(view.pools).map(
      ([name, pool]): Entry => ({
        kind: 'pool',
        name,
        texts: [
          ...(subjects.get(name) ?? []),
          pool.headline,
          pool.config,
          pool.from,
          pool.source?.url,
          pool.source?.revision,
          ...pool.holds.map(holdText),
        ],
      }),
    ),
    ...Object.entries(view.nodes).map(
      ([name, node]): Entry => ({
        kind: 'node',
        name,
        texts: nodeTexts(node, stateWord),
      }),
    ),
    ...Object.entries(view.builds).map(
      ([name, build]): Entry => ({
        kind: 'build',
        name,
        texts: [...buildTexts(build), ...(view.logs[name] ?? [])],
      }),
    ),
    ...Object.entries(view.policies).map(
      ([name, { subject, actions, source }]): Entry => ({
        kind: 'policy',
        name,
        texts: [`${subject}: ${actions}`, source],
      }),
    ),
    ...Object.entries(view.leases)
      .filter(([, { ours }]) => !ours)
      .map(([name, { holder, reason }]): Entry => ({ kind: 'lease', name, texts: [holder, reason] })),
  ];
}

function nodeTexts(node: NodeRow, stateWord: (state: NodeStateName) => string): Entry['texts'] {
  return [
    stateWord(node.state),
    node.pool,
    ...(node.heldPods ?? []).map(({ pod, why }) => `${pod}: ${why}`),
    ...(node.holds ?? []).map(holdText),
    node.maintenance,
    node.note,
    node.zone,
    node.ready ? undefined : 'not ready',
    node.cordoned === true ? 'cordoned' : undefined,
    node.config,
    node.desiredConfig,
    node.image,
    node.desiredImage,
  ];
}

function buildTexts({
  pool,
  state,
  message,
  config,
  image,
  baseImage,
  transitions,
}: BuildRow): Entry['texts'] {
  return [
    pool,
    state,
    message,
    config,
    image,
    baseImage,
    ...transitions.map(({ from, actions }) => `${from}: ${actions}`),
  ];
}

function holdText({ by, reason }: HoldRow): string {
  return [by, reason].filter((text) => text !== undefined).join(': ');
}

/** What the updates of each pool's nodes change: nodes with equal plans share a plan, so few are read. */
function subjectsByPool({ nodes, plans }: PageView): ReadonlyMap<string, ReadonlySet<string>> {
  const plansByPool = new Map<string, Set<string>>();
  for (const { pool, plan } of Object.values(nodes)) {
    if (plan === undefined) continue;
    const known = plansByPool.get(pool);
    if (known === undefined) plansByPool.set(pool, new Set([plan]));
    else known.add(plan);
  }
  return new Map(
    [...plansByPool].map(([pool, keys]) => [
      pool,
      new Set(
        [...keys].flatMap(
          (key) => plans[key]?.causes.map(({ subject, change }) => `${subject} ${change}`) ?? [],
        ),
      ),
    ]),
  );
}
