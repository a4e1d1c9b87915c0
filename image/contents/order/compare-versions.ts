import type { PackageFormat } from '../package.ts';
import { compareApkVersions } from './apk-order.ts';
import { compareDpkgVersions } from './dpkg-order.ts';
import { compareRpmVersions } from './rpm-order.ts';

const ORDERS = { dpkg: compareDpkgVersions, rpm: compareRpmVersions, apk: compareApkVersions } as const;

/** @returns negative, 0 or positive: the order that the package manager of a format has versions in. */
export function compareVersions(format: PackageFormat, a: string, b: string): number {
  return ORDERS[format](a, b);
}
