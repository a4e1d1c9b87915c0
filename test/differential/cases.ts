import fc from 'fast-check';
import type { MachineConfig } from '../../api/machine-config.ts';
import { SKELETON, STATE_SKELETON, TOPICS, type Topic } from './topics.ts';
import { formatItem, type TreeItem } from './tree-item.ts';
import { DROPIN_TEXTS, UNIT_TEXTS, UNIT_TOPICS } from './unit-topics.ts';

/** A base, a node's /var, and two configs that a node goes from and to. */
export interface Case {
  /** The layers of the base. */
  readonly layers: readonly (readonly TreeItem[])[];
  readonly state: readonly TreeItem[];
  /** What a node has first, and what it has then. */
  readonly configs: { readonly A: ConfigItems; readonly B: ConfigItems };
  /** Where the node goes in the end: to the first config again, or to none. */
  readonly ending: 'back' | 'out';
  /** How the node goes from one to the other. */
  readonly ways: readonly Way[];
  readonly capabilities: boolean;
  /** Whether the base has lines of tmpfiles.d of its own, which have their say at each boot. */
  readonly tmpfiles: boolean;
  /** Whether systemd-tmpfiles runs at each boot, as it does on a machine: a process costs as much as all else. */
  readonly runsTmpfiles: boolean;
}

/**
 * How content comes to a node: written by the daemon; in an image that it boots; in an image that it applies to the
 * running root; in images of which it boots the first, applies the next, and boots the last; with the image that a
 * machine is installed with, whose /var is empty.
 */
export type Way = 'standard' | 'reboot' | 'live' | 'in turns' | 'first boot';

type Entry = Readonly<Record<string, unknown>>;
/** A file, directory or link. */
type PathEntry = Entry & { readonly path: string };

/** The parts of a config, in Ignition's own words. */
interface ConfigItems {
  readonly files: readonly PathEntry[];
  readonly directories: readonly PathEntry[];
  readonly links: readonly PathEntry[];
  readonly units: readonly Entry[];
  readonly users: readonly Entry[];
}

type Owner = { readonly id: number } | { readonly name: string } | undefined;

interface EntryAtPath {
  readonly kind: 'files' | 'directories' | 'links';
  readonly key: string;
  readonly value: PathEntry;
}

/** One entry of a config, in one of both or in both. */
interface Drawn {
  readonly within: 'A' | 'B' | 'AB';
  readonly entry:
    | EntryAtPath
    | { readonly kind: 'units' | 'users'; readonly key: string; readonly value: Entry };
}

/** A choice shrinks to the first of its alternatives. */
const SHRINKING = { withCrossShrink: true } as const;

const within = fc.constantFrom<Drawn['within'][]>('A', 'AB', 'B');
const owner = fc.oneof(
  SHRINKING,
  { weight: 12, arbitrary: fc.constant<Owner>(undefined) },
  {
    weight: 8,
    arbitrary: fc.constantFrom<Owner[]>(
      { id: 1000 },
      { name: 'core' },
      { name: 'svc' },
      { id: 998 },
      { name: 'root' },
    ),
  },
  { weight: 1, arbitrary: fc.constantFrom<Owner[]>({ id: 4_000_000_000 }, { name: 'unknown' }) },
);
const ownership = fc.record({ user: owner, group: owner }).map(({ user, group }) => ({
  ...(user === undefined ? {} : { user }),
  ...(group === undefined ? {} : { group }),
}));
const TEXTS = ['new', '', 'other', 'x'.repeat(3000)] as const;
const FILE_MODES = [0o644, 0o600, 0o755, 0o444, 0, 0o777] as const;
const DIRECTORY_MODES = [0o755, 0o700, 0o750, 0o1777, 0o2775, 0] as const;
const TARGETS = [
  'x',
  '../x',
  '/etc/passwd',
  '/nowhere',
  '../pki/tls/certs',
  '.',
  'a b%c\\d',
  '-',
  '/var/lib',
] as const;

function fileAt(path: string): fc.Arbitrary<Drawn['entry']> {
  return fc
    .record({ text: fc.constantFrom(...TEXTS), mode: fc.constantFrom(...FILE_MODES), owned: ownership })
    .map(({ text, mode, owned }) => ({
      kind: 'files',
      key: path,
      value: {
        path,
        mode,
        overwrite: true,
        contents: { source: `data:,${encodeURIComponent(text)}` },
        ...owned,
      },
    }));
}

function directoryAt(path: string): fc.Arbitrary<Drawn['entry']> {
  return fc
    .record({ mode: fc.constantFrom(...DIRECTORY_MODES), owned: ownership })
    .map(({ mode, owned }) => ({ kind: 'directories', key: path, value: { path, mode, ...owned } }));
}

function linkAt(path: string, paths: readonly string[]): fc.Arbitrary<Drawn['entry']> {
  const soft = fc.record({ target: fc.constantFrom(...TARGETS), owned: ownership });
  const hard = fc
    .constantFrom(...paths, '/etc/passwd', '/etc/nowhere')
    .map((target) => ({ target, hard: true, owned: {} }));
  return fc
    .oneof(SHRINKING, { weight: 3, arbitrary: soft }, { weight: 2, arbitrary: hard })
    .map(({ owned, ...rest }) => ({
      kind: 'links',
      key: path,
      value: { path, overwrite: true, ...rest, ...owned },
    }));
}

function drawnAt(paths: readonly string[]): fc.Arbitrary<Drawn> {
  const entry = fc
    .constantFrom(...paths)
    .chain((path) =>
      fc.oneof(
        SHRINKING,
        { weight: 5, arbitrary: fileAt(path) },
        { weight: 2, arbitrary: directoryAt(path) },
        { weight: 2, arbitrary: linkAt(path, paths) },
      ),
    );
  return fc.record({ within, entry });
}

function unitOf(names: readonly string[]): fc.Arbitrary<Drawn> {
  const entry = fc
    .record({
      name: fc.constantFrom(...names),
      contents: fc.constantFrom(...UNIT_TEXTS),
      enabled: fc.constantFrom(undefined, true, false),
      mask: fc.constantFrom(false, false, false, true),
      dropin: fc.constantFrom(undefined, undefined, undefined, ...DROPIN_TEXTS),
    })
    .map(({ name, contents, enabled, mask, dropin }): Drawn['entry'] => ({
      kind: 'units',
      key: name,
      value: {
        name,
        ...(contents === undefined ? {} : { contents }),
        ...(enabled === undefined ? {} : { enabled }),
        ...(mask ? { mask } : {}),
        ...(dropin === undefined ? {} : { dropins: [{ name: '10-own.conf', contents: dropin }] }),
      },
    }));
  return fc.record({ within, entry });
}

const users: fc.Arbitrary<Drawn> = fc.record({
  within,
  entry: fc.constantFrom('core', 'root', 'nobody-here').map((name): Drawn['entry'] => ({
    kind: 'users',
    key: name,
    value: { name, sshAuthorizedKeys: ['ssh-ed25519 AAAA test'] },
  })),
});

interface DrawnTopic {
  readonly topic: Topic;
  readonly isInBase: boolean;
  readonly drawn: readonly Drawn[];
}

const isInBase = fc.constantFrom(true, true, true, true, false);
const topic: fc.Arbitrary<DrawnTopic> = fc.constantFrom(...TOPICS).chain((chosen) =>
  fc.record({
    topic: fc.constant<Topic>(chosen),
    isInBase,
    drawn: fc.array(drawnAt(chosen.paths), { minLength: 1, maxLength: 3 }),
  }),
);
const unitTopic: fc.Arbitrary<DrawnTopic> = fc.constantFrom(...UNIT_TOPICS).chain((chosen) =>
  fc.record({
    topic: fc.constant<Topic>(chosen),
    isInBase,
    drawn: fc.array(
      fc.oneof(
        { weight: 4, arbitrary: unitOf(chosen.units) },
        { weight: 1, arbitrary: drawnAt(chosen.paths) },
      ),
      { minLength: 1, maxLength: 2 },
    ),
  }),
);
const userTopic: fc.Arbitrary<DrawnTopic> = users.map((drawn) => ({
  topic: { name: 'users', paths: [] },
  isInBase: true,
  drawn: [drawn],
}));

const topics = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: topic },
    { weight: 3, arbitrary: unitTopic },
    { weight: 1, arbitrary: userTopic },
  ),
  { minLength: 1, maxLength: 4 },
);

const DRAWS = {
  drawn: topics,
  ending: fc.constantFrom<Case['ending'][]>('back', 'out'),
  runsTmpfiles: fc.constantFrom(false, false, false, true),
};

/**
 * A running host has /usr read-only, so that standard mode refuses what lies there; to the other ways it says what is
 * right.
 */
const isOfImage = ({ entry }: Drawn) => /^\/(usr|s?bin|lib(64)?)\/(?!local\/)/.test(entry.key);

/** @returns cases of these ways, of small choices that shrink one by one: a topic, an entry, a mode. */
export function casesOf(ways: readonly Way[]): fc.Arbitrary<Case> {
  return fc.record(DRAWS).map(({ drawn, ...rest }) => {
    const isWritten = (each: Drawn) => ways.some((way) => way !== 'standard') || !isOfImage(each);
    return caseOf(
      drawn.map((each) => ({ ...each, drawn: each.drawn.filter(isWritten) })),
      { ways, ...rest },
    );
  });
}

function caseOf(
  topics: readonly DrawnTopic[],
  { ways, ending, runsTmpfiles }: Pick<Case, 'ways' | 'ending' | 'runsTmpfiles'>,
): Case {
  const present = new Set(topics.filter((each) => each.isInBase).map((each) => each.topic));
  const depth = Math.max(1, ...[...present].map(({ base = [] }) => base.length));
  const own = new Set([...present].flatMap(({ base = [] }) => base.flat().map((item) => item.path)));
  const layers = Array.from({ length: depth }, (_, index) => [
    ...(index === 0 ? SKELETON.filter(({ path }) => !own.has(path)) : []),
    ...[...present].flatMap(({ base = [] }) => base[index] ?? []),
  ]);
  const isEmpty = ways.includes('first boot');
  const ownState = isEmpty ? [] : [...present].flatMap((each) => each.state ?? []);
  const state = [...STATE_SKELETON, ...ownState];
  const drawn = topics.flatMap((each) => each.drawn);
  const tmpfiles = layers.flat().some(({ path }) => path.startsWith('/usr/lib/tmpfiles.d/'));
  return {
    layers,
    state,
    ways,
    ending,
    configs: { A: itemsOf(drawn, 'A'), B: itemsOf(drawn, 'B') },
    capabilities: layers.flat().some((item) => item.type === 'file' && item.capable === true),
    tmpfiles,
    runsTmpfiles: runsTmpfiles || tmpfiles || ways.includes('first boot'),
  };
}

/** Of several entries with one path the first counts: a config may have one. */
function itemsOf(drawn: readonly Drawn[], which: 'A' | 'B'): ConfigItems {
  const entries = new Map<string, Drawn['entry']>();
  for (const { within: configs, entry } of drawn) {
    const key = entry.kind === 'units' || entry.kind === 'users' ? `${entry.kind} ${entry.key}` : entry.key;
    if (configs.includes(which) && !entries.has(key)) entries.set(key, entry);
  }
  const all = [...entries.values()];
  const isAtPath = (entry: Drawn['entry']): entry is EntryAtPath =>
    entry.kind !== 'units' && entry.kind !== 'users';
  const atPath = (kind: EntryAtPath['kind']) =>
    all.filter(isAtPath).flatMap((entry) => (entry.kind === kind ? [entry.value] : []));
  const named = (kind: 'units' | 'users') =>
    all.filter((entry) => entry.kind === kind).map(({ value }) => value);
  return {
    files: atPath('files'),
    directories: atPath('directories'),
    links: atPath('links'),
    units: named('units'),
    users: named('users'),
  };
}

/** @returns a MachineConfig with these entries. */
export function machineConfigOf({
  files,
  directories,
  links,
  units,
  users: people,
}: ConfigItems): MachineConfig {
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name: '50-differential', labels: { 'machineconfiguration.openshift.io/role': 'worker' } },
    spec: {
      config: {
        ignition: { version: '3.4.0' },
        storage: { files: [...files], directories: [...directories], links: [...links] },
        systemd: { units },
        passwd: { users: people },
      },
    },
  };
}

/** @returns the case as text, from which a person can repeat it. */
export function formatCase({ layers, state, configs }: Case): string {
  const own = (items: readonly TreeItem[], skeleton: readonly TreeItem[]) =>
    items.filter((item) => !skeleton.includes(item)).map((item) => `  ${formatItem(item)}`);
  const lines = (items: ConfigItems) =>
    Object.entries(items).flatMap(([kind, values]: [string, readonly Entry[]]) =>
      values.map((value) => `  ${kind} ${JSON.stringify(value).replaceAll(/x{100,}/g, 'x…')}`),
    );
  return [
    ...layers.flatMap((items, index) => [`base, layer ${index}:`, ...own(items, SKELETON)]),
    '/var of the node:',
    ...own(state, STATE_SKELETON),
    'config A:',
    ...lines(configs.A),
    'config B:',
    ...lines(configs.B),
  ].join('\n');
}
