import { plural } from '../../api/plural.ts';
import { type ContentsDiff, hasPackages, osName } from './diff-contents.ts';
import type { ImageContents } from './image-contents.ts';
import { changeCounts, PACKAGE_CHANGES } from './package-changes.ts';

/**
 * @param reboots whether the change is known to reboot a node.
 * @returns a diff as one line, such as `41 packages (1 added, 40 upgraded), kernel 6.12.9 -> 6.12.14, reboot`.
 */
export function summaryOf(diff: ContentsDiff, reboots: boolean): string {
  const parts = [
    ...(diff.os === undefined ? [] : [`${diff.os.from} -> ${diff.os.to}`]),
    ...packagesIn(diff),
    ...kernelIn(diff),
    ...countsIn(diff).flatMap(([count, one, many]) => (count === 0 ? [] : [plural(count, one, many)])),
  ];
  const all = parts.length === 0 ? ['no difference in packages, kernel, units or users'] : parts;
  return [...all, ...(reboots ? ['reboot'] : [])].join(', ');
}

/** @returns what an image has as one line, such as `Debian GNU/Linux 13 (trixie), 214 packages, kernel 6.12.14`. */
export function summaryOfOne(contents: ImageContents): string {
  const { databases, kernels } = contents;
  const count = databases.reduce((sum, { packages }) => sum + packages.length, 0);
  return [
    osName(contents),
    hasPackages(contents) ? plural(count, 'package') : 'packages unknown',
    ...(kernels.length === 0 ? [] : [`kernel ${kernels.join(', ')}`]),
  ].join(', ');
}

/** What is only counted, each with its words for one and for several. */
function countsIn(diff: ContentsDiff): readonly (readonly [count: number, one: string, many: string])[] {
  const { units, users, groups } = diff;
  const sum = ({ added, removed }: ContentsDiff['presets']) => added.length + removed.length;
  const accounts = [...users, ...groups];
  const moved = accounts.filter(({ from, to }) => from !== undefined && to !== undefined).length;
  return [
    [sum(diff.kernelArguments), 'kernel argument', 'kernel arguments'],
    [units.enabled.length, 'unit enabled', 'units enabled'],
    [units.disabled.length + units.removed.length, 'unit no longer enabled', 'units no longer enabled'],
    [units.masked.length, 'unit masked', 'units masked'],
    [units.unmasked.length, 'unit no longer masked', 'units no longer masked'],
    [sum(diff.presets), 'preset', 'presets'],
    [moved, 'user or group with another number', 'users and groups with another number'],
    [sum(diff.allocated), 'user or group allocated at boot', 'users and groups allocated at boot'],
    [accounts.length - moved, 'user or group added or removed', 'users and groups added or removed'],
  ];
}

function packagesIn({ packages }: ContentsDiff): readonly string[] {
  if (packages === undefined) return ['packages unknown'];
  if (packages.length === 0) return [];
  const counts = changeCounts(packages);
  const changes = PACKAGE_CHANGES.filter((change) => counts[change] > 0)
    .map((change) => `${counts[change]} ${change}`)
    .join(', ');
  return [`${plural(packages.length, 'package')} (${changes})`];
}

function kernelIn({ kernels: { added, removed } }: ContentsDiff): readonly string[] {
  if (added.length === 0 && removed.length === 0) return [];
  if (removed.length === 0) return [`kernel ${added.join(', ')} added`];
  if (added.length === 0) return [`kernel ${removed.join(', ')} removed`];
  return [`kernel ${removed.join(', ')} -> ${added.join(', ')}`];
}
