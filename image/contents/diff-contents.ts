import { by } from '../../api/order.ts';
import type { ImageContents } from './image-contents.ts';
import { type PackageChange, packageChanges } from './package-changes.ts';
import type { Units } from './units.ts';

/** What is different in one image, compared with another. Lists are empty where nothing is. */
export interface ContentsDiff {
  /** The name and release of the operating system; absent where it is the same. */
  readonly os?: { readonly from: string; readonly to: string };
  /** Absent where those of one image are not known, which `unknown` explains. */
  readonly packages?: readonly PackageChange[];
  /** What could not be compared, and why: sentences without a full stop. */
  readonly unknown: readonly string[];
  readonly kernels: Sides;
  readonly kernelArguments: Sides;
  readonly units: UnitChanges;
  readonly presets: Sides;
  readonly users: readonly AccountChange[];
  readonly groups: readonly AccountChange[];
  /** Users and groups whose numbers the first boot chooses (sysusers.d(5)). */
  readonly allocated: Sides;
}

/** What only one image has. */
interface Sides {
  readonly added: readonly string[];
  readonly removed: readonly string[];
}

interface UnitChanges {
  readonly enabled: readonly string[];
  /** They are still there. */
  readonly disabled: readonly string[];
  /** They were enabled, and are not there any more. */
  readonly removed: readonly string[];
  readonly masked: readonly string[];
  readonly unmasked: readonly string[];
}

/** Without `from` an account is added, without `to` removed; with both its files keep the old number. */
interface AccountChange {
  readonly name: string;
  readonly from?: number;
  readonly to?: number;
}

/** What messages call the images. */
export interface ImageNames {
  readonly from: string;
  readonly to: string;
}

/** @returns what is different once one image has taken the place of another. */
export function diffContents(before: ImageContents, after: ImageContents, names: ImageNames): ContentsDiff {
  const unknown = [...unknownOf(before, names.from), ...unknownOf(after, names.to)];
  const [was, will] = [osName(before), osName(after)];
  return {
    ...(was === will ? {} : { os: { from: was, to: will } }),
    ...(hasPackages(before) && hasPackages(after)
      ? { packages: packageChanges(before.databases, after.databases) }
      : {}),
    unknown,
    kernels: sides(before.kernels, after.kernels),
    kernelArguments: sides(before.kernelArguments, after.kernelArguments),
    units: unitChanges(before.units, after.units),
    presets: sides(before.presets, after.presets),
    users: accountChanges(before.users, after.users),
    groups: accountChanges(before.groups, after.groups),
    allocated: sides(before.allocated, after.allocated),
  };
}

/** @returns whether anything is known to be different. */
export function isDifferent({ os, packages = [], unknown: _, ...others }: ContentsDiff): boolean {
  const { kernels, kernelArguments, units, presets, users, groups, allocated } = others;
  const lists = [
    packages,
    users,
    groups,
    ...[kernels, kernelArguments, presets, units, allocated].flatMap(
      (each) => Object.values(each) as readonly unknown[][],
    ),
  ];
  return os !== undefined || lists.some(({ length }) => length > 0);
}

/** @returns whether the packages of an image are known, all of them. */
export function hasPackages({ databases, unreadable }: ImageContents): boolean {
  return databases.length > 0 && unreadable.every(({ isDatabase }) => !isDatabase);
}

function unknownOf({ databases, unreadable }: ImageContents, name: string): readonly string[] {
  const why = unreadable.map((file) => `${name}: ${file.path} ${file.why}`);
  const isEmpty = databases.length === 0 && unreadable.every(({ isDatabase }) => !isDatabase);
  return isEmpty ? [...why, `${name} has no package database of dpkg, RPM or apk`] : why;
}

/** @returns the operating system of an image, as os-release(5) names it for people. */
export function osName({ os }: ImageContents): string {
  const { ID, NAME, PRETTY_NAME, VERSION_ID } = os as Readonly<Record<string, string | undefined>>;
  return PRETTY_NAME ?? [NAME ?? ID ?? 'unknown', VERSION_ID].filter((part) => part !== undefined).join(' ');
}

function sides(before: readonly string[], after: readonly string[]): Sides {
  return { added: without(after, before), removed: without(before, after) };
}

function without(list: readonly string[], others: readonly string[]): readonly string[] {
  const known = new Set(others);
  return [...new Set(list)].filter((each) => !known.has(each));
}

function unitChanges(before: Units, after: Units): UnitChanges {
  const enabled = sides(before.enabled, after.enabled);
  const masked = sides(before.masked, after.masked);
  const present = new Set([...after.present, ...after.masked]);
  return {
    enabled: enabled.added,
    disabled: enabled.removed.filter((name) => present.has(name)),
    removed: enabled.removed.filter((name) => !present.has(name)),
    masked: masked.added,
    unmasked: masked.removed,
  };
}

function accountChanges(
  before: ReadonlyMap<string, number>,
  after: ReadonlyMap<string, number>,
): readonly AccountChange[] {
  const names = [...new Set([...before.keys(), ...after.keys()])];
  return names
    .map((name) => ({ name, was: before.get(name), will: after.get(name) }))
    .filter(({ was, will }) => was !== will)
    .map(({ name, was, will }) => ({
      name,
      ...(was === undefined ? {} : { from: was }),
      ...(will === undefined ? {} : { to: will }),
    }))
    .toSorted(by(({ name }) => name));
}
