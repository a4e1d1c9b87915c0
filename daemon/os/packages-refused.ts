import type { PackageSet } from '../../machineconfig/os-packages.ts';
import { INSTALLS_NONE } from '../../machineconfig/standard-mode.ts';
import type { ExtraPackages } from './backend.ts';

/** What keeps the host's operating system installs no packages. Nothing was touched. */
export class PackagesRefused extends Error {
  override readonly name = 'PackagesRefused';
}

/** @param tool that keeps the host's operating system. @throws PackagesRefused where packages are to be changed. */
export function refusePackages(tool: string, extra: ExtraPackages | undefined): void {
  if (!asksForPackages(extra)) return;
  throw new PackagesRefused(`${tool} ${INSTALLS_NONE}`);
}

/** @returns whether packages are to be there beside an image, or were. */
export function asksForPackages(extra: ExtraPackages | undefined): boolean {
  if (extra === undefined) return false;
  const isSome = ({ installed, removed }: PackageSet) => installed.length + removed.length > 0;
  return isSome(extra.add) || isSome(extra.remove);
}
