import { by } from '../../api/order.ts';
import type { PackageDatabase } from './image-contents.ts';
import { compareVersions } from './order/compare-versions.ts';
import type { Package, PackageFormat } from './package.ts';

export const PACKAGE_CHANGES = ['added', 'removed', 'upgraded', 'downgraded', 'changed'] as const;

/** What goes and what goes back to an older version is rarer than an upgrade, and comes first. */
const BY_INTEREST = ['removed', 'downgraded', 'changed', 'added', 'upgraded'] as const;

/**
 * What becomes of a package. `changed`: neither version comes before the other, or only the architecture is another.
 * Packages that may be installed in several versions, as RPM's kernels, are added and removed, and so are keys.
 */
export interface PackageChange {
  readonly change: (typeof PACKAGE_CHANGES)[number];
  readonly name: string;
  readonly format: PackageFormat;
  readonly architecture: string;
  /** Versions; absent for one that is added. */
  readonly from?: string;
  /** Absent for one that is removed. */
  readonly to?: string;
}

/** @returns what changes, by name; packages that stay as they are aren't in it. */
export function packageChanges(
  before: readonly PackageDatabase[],
  after: readonly PackageDatabase[],
): readonly PackageChange[] {
  const [was, will] = [byName(before), byName(after)];
  const keys = [...new Set([...was.keys(), ...will.keys()])].sort();
  return keys
    .flatMap((key) => {
      const [format, name] = key.split('\0') as [PackageFormat, string];
      return changesOf({ format, name }, was.get(key) ?? [], will.get(key) ?? []);
    })
    .sort(by(({ name }) => name));
}

/** @returns the changes in the order in which they are shown, where only some are. */
export function byInterest(packages: readonly PackageChange[]): readonly PackageChange[] {
  return BY_INTEREST.flatMap((change) => packages.filter((each) => each.change === change));
}

/** @returns the number of changes of each kind. */
export function changeCounts(packages: readonly PackageChange[]): Record<PackageChange['change'], number> {
  const counts = { added: 0, removed: 0, upgraded: 0, downgraded: 0, changed: 0 };
  for (const { change } of packages) counts[change] += 1;
  return counts;
}

function byName(databases: readonly PackageDatabase[]): ReadonlyMap<string, readonly Package[]> {
  const all = databases.flatMap(({ format, packages }) => packages.map((each) => ({ format, each })));
  const grouped = Map.groupBy(all, ({ format, each }) => `${format}\0${each.name}`);
  return new Map([...grouped].map(([key, group]) => [key, group.map(({ each }) => each)]));
}

/** `rpm --import` keeps a key as a package of this name. Its version is the key's number: none is newer than others. */
const RPM_KEY = 'gpg-pubkey';

/** Of one name: what is on both sides cancels out, then one and one of an architecture are a pair. */
function changesOf(
  subject: Pick<PackageChange, 'format' | 'name'>,
  before: readonly Package[],
  after: readonly Package[],
): readonly PackageChange[] {
  const gone = without(before, after);
  const come = without(after, before);
  // As when a package is no longer the same for all architectures.
  const isOne = gone.length === 1 && come.length === 1;
  const architectureOf = ({ architecture }: Package) => (isOne ? '' : architecture);
  const architectures = [...new Set([...gone, ...come].map(architectureOf))].sort();
  return architectures.flatMap((architecture) => {
    const of = (list: readonly Package[]) => list.filter((each) => architectureOf(each) === architecture);
    return changesOfOne(subject, of(gone), of(come));
  });
}

function changesOfOne(
  subject: Pick<PackageChange, 'format' | 'name'>,
  gone: readonly Package[],
  come: readonly Package[],
): readonly PackageChange[] {
  const [from, to] = [gone[0], come[0]];
  const isPair = gone.length === 1 && come.length === 1 && subject.name !== RPM_KEY;
  if (isPair && from !== undefined && to !== undefined) return [paired(subject, from, to)];
  return [
    ...gone.map(({ version, architecture }) => ({
      ...subject,
      change: 'removed' as const,
      architecture,
      from: version,
    })),
    ...come.map(({ version, architecture }) => ({
      ...subject,
      change: 'added' as const,
      architecture,
      to: version,
    })),
  ];
}

function without(list: readonly Package[], others: readonly Package[]): readonly Package[] {
  const key = ({ version, architecture }: Package) => `${version}\0${architecture}`;
  const known = new Set(others.map(key));
  return list.filter((each) => !known.has(key(each)));
}

function paired(
  subject: Pick<PackageChange, 'format' | 'name'>,
  { version: from }: Package,
  { version: to, architecture }: Package,
): PackageChange {
  const order = compareVersions(subject.format, from, to);
  const change = order < 0 ? 'upgraded' : order > 0 ? 'downgraded' : 'changed';
  return { ...subject, change, architecture, from, to };
}
