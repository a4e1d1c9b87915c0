import type { HoldView } from '../../view/schemas.ts';
import { stateWord } from '../../view/words.ts';
import { type BuildRow, byNaturalOrder, type NodeRow, type PageView, type PoolRow } from './view.ts';

/** What has a place on the page, in the order in which a search lists it. */
export const ROW_KINDS = ['pool', 'node', 'build', 'policy', 'lease'] as const;

/** Something that a search found. */
export interface SearchHit {
  readonly kind: (typeof ROW_KINDS)[number];
  /** The key of its row. */
  readonly name: string;
  /** What matched, if it is not the name. */
  readonly line?: string | undefined;
}

/** What is shown of a row beside its name. */
interface Texts {
  readonly texts: readonly string[];
  /** All of them in lower case, a line each. */
  readonly lower: string;
}

/** A row as text. */
type Entry = Texts & Pick<SearchHit, 'kind' | 'name'>;

/**
 * Searches everything that the page shows: pools with the changes that they bring, nodes, builds with their logs,
 * policies and leases. Each word has to occur in a row; case doesn't matter.
 *
 * @param most findings to return.
 * @returns the best ones, and how many there are in all.
 */
export function search(
  view: PageView,
  text: string,
  most: number,
): { readonly found: readonly SearchHit[]; readonly total: number } {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return { found: [], total: 0 };
  const ranked = entriesOf(view).flatMap((entry) => {
    const name = entry.name.toLowerCase();
    const others = words.filter((word) => !name.includes(word));
    if (!others.every((word) => entry.lower.includes(word))) return [];
    const line = others.length === 0 ? undefined : entry.texts.find((each) => hasOneOf(others, each));
    const rank =
      name === words.join(' ') ? 0 : name.startsWith(words[0] ?? '') ? 1 : others.length === 0 ? 2 : 3;
    const finding: SearchHit = { kind: entry.kind, name: entry.name, line };
    return [{ rank, finding }];
  });
  const found = ranked
    .toSorted(
      (a, b) =>
        a.rank - b.rank ||
        ROW_KINDS.indexOf(a.finding.kind) - ROW_KINDS.indexOf(b.finding.kind) ||
        byNaturalOrder(a.finding.name, b.finding.name),
    )
    .slice(0, most)
    .map(({ finding }) => finding);
  return { found, total: ranked.length };
}

function hasOneOf(words: readonly string[], text: string): boolean {
  const lower = text.toLowerCase();
  return words.some((word) => lower.includes(word));
}

function entriesOf(view: PageView): readonly Entry[] {
  const subjects = subjectsByPool(view);
  return [
    ...Object.entries(view.pools).map(([name, pool]) => {
      const texts = [...(subjects.get(name) ?? []), ...poolTexts(pool)];
      return { kind: 'pool', name, ...textsOf(texts) } as const;
    }),
    ...Object.entries(view.nodes).map(([name, node]) => {
      const texts = textsByNode.get(node) ?? textsOf(nodeTexts(node));
      textsByNode.set(node, texts);
      return { kind: 'node', name, ...texts } as const;
    }),
    ...Object.entries(view.builds).map(([name, build]) => {
      const texts = [...buildTexts(build), ...(view.logs[name] ?? [])];
      return { kind: 'build', name, ...textsOf(texts) } as const;
    }),
    ...Object.entries(view.policies).map(([name, { subject, actions, source }]) => {
      return { kind: 'policy', name, ...textsOf([`${subject}: ${actions}`, source]) } as const;
    }),
    ...Object.entries(view.leases)
      .filter(([, { ours }]) => !ours)
      .map(([name, { holder, reason }]) => {
        return { kind: 'lease', name, ...textsOf([holder, reason]) } as const;
      }),
  ];
}

/** Rows of nodes stay the same objects until they change, and to read thousands of them for each letter is slow. */
const textsByNode = new WeakMap<NodeRow, Texts>();

function textsOf(given: readonly (string | undefined)[]): Texts {
  const texts = given.filter((text) => text !== undefined);
  return { texts, lower: texts.join('\n').toLowerCase() };
}

function poolTexts({ what, config, from, source, holds = [] }: PoolRow): readonly (string | undefined)[] {
  return [what, config, from, source?.url, source?.revision, ...holds.map(holdText)];
}

function nodeTexts(node: NodeRow): readonly (string | undefined)[] {
  return [
    stateWord(node.state),
    node.pool,
    ...(node.blockedBy ?? []).map(({ pod, reason }) => `${pod}: ${reason}`),
    ...(node.holds ?? []).map(holdText),
    node.obstacle,
    node.what,
    node.zone,
    node.ready ? undefined : 'not ready',
    node.cordoned ? 'cordoned' : undefined,
    node.nextBoot === true ? 'next reboot' : undefined,
    node.config.current,
    node.config.desired,
    node.image?.current,
    node.image?.desired,
  ];
}

function buildTexts(build: BuildRow): readonly (string | undefined)[] {
  const { pool, state, what, config, image, baseImage, transitions } = build;
  return [
    pool,
    state,
    what,
    config,
    image,
    baseImage,
    ...transitions.map(({ from, actions }) => `${from}: ${actions}`),
  ];
}

function holdText({ by, reason }: HoldView): string {
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
