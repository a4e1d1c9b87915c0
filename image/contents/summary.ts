import { plural } from '../../api/plural.ts';
import type { ContentsDiff } from './diff-contents.ts';
import { PACKAGE_CHANGES } from './package-changes.ts';

/**
 * @param reboots whether the change is known to reboot a node.
 * @returns a diff as one line, such as `41 packages (1 added, 40 upgraded), kernel 6.12.9 -> 6.12.14, reboot`.
 */
export function summaryOf(diff: ContentsDiff, reboots: boolean): string {
  const { kernelArguments, units } = diff;
  const started = units.enabled.length;
  const stopped = units.disabled.length + units.removed.length;
  const moved = [...diff.users, ...diff.groups].filter(
    ({ from, to }) => from !== undefined && to !== undefined,
  ).length;
  const args = kernelArguments.added.length + kernelArguments.removed.length;
  const parts = [
    diff.os === undefined ? '' : `${diff.os.from} -> ${diff.os.to}`,
    packagesIn(diff),
    kernelIn(diff),
    args === 0 ? '' : plural(args, 'kernel argument'),
    started === 0 ? '' : `${plural(started, 'unit')} enabled`,
    stopped === 0 ? '' : `${plural(stopped, 'unit')} no longer enabled`,
    moved === 0 ? '' : `${plural(moved, 'user or group', 'users and groups')} with another number`,
  ].filter((part) => part !== '');
  return [
    ...(parts.length === 0 ? ['no difference in packages, kernel, units or users'] : parts),
    ...(reboots ? ['reboot'] : []),
  ].join(', ');
}

function packagesIn({ packages }: ContentsDiff): string {
  if (packages === undefined) return 'packages unknown';
  if (packages.length === 0) return '';
  const counts = PACKAGE_CHANGES.map((change) => ({
    change,
    count: packages.filter((each) => each.change === change).length,
  })).filter(({ count }) => count > 0);
  return `${plural(packages.length, 'package')} (${counts.map(({ change, count }) => `${count} ${change}`).join(', ')})`;
}

function kernelIn({ kernels: { added, removed } }: ContentsDiff): string {
  if (added.length === 0 && removed.length === 0) return '';
  if (removed.length === 0) return `kernel ${added.join(', ')} added`;
  if (added.length === 0) return `kernel ${removed.join(', ')} removed`;
  return `kernel ${removed.join(', ')} -> ${added.join(', ')}`;
}
