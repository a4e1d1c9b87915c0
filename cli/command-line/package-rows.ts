import { byInterest, type PackageChange } from '../../image/contents/package-changes.ts';

/** @returns a row for each: what becomes of it, its name, its versions. */
export function packageRows(
  packages: readonly PackageChange[],
): readonly (readonly [string, string, string])[] {
  const names = Map.groupBy(packages, ({ name }) => name);
  return byInterest(packages).map(({ change, name, architecture, from, to }) => [
    change,
    // Of several architectures, or several versions of one.
    (names.get(name)?.length ?? 0) > 1 && architecture !== '' ? `${name}:${architecture}` : name,
    [from, to].filter((version) => version !== undefined).join(' -> '),
  ]);
}
