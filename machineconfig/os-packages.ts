import type { KernelType, NodeConfig } from './node-config.ts';

/** Packages of each extension that MCO knows (SupportedExtensions). */
const EXTENSIONS: Readonly<Record<string, readonly string[]>> = {
  ipsec: ['NetworkManager-libreswan', 'libreswan', 'openvswitch3.5-ipsec'],
  kerberos: ['krb5-workstation', 'libkadm5'],
  'kernel-devel': ['kernel-devel', 'kernel-headers'],
  'sandboxed-containers': ['kata-containers'],
  sysstat: ['sysstat'],
  'two-node-ha': ['fence-agents-all', 'pacemaker', 'pcs'],
  usbguard: ['usbguard'],
};

/** Names of the extensions that MCO supports. */
export const SUPPORTED_EXTENSIONS: ReadonlySet<string> = new Set(Object.keys(EXTENSIONS));

/** The kernel of an image (MCO, daemon/update.go getKernelPackagesForTargetRelease, also for the two below). */
const DEFAULT_KERNEL = [
  'kernel',
  'kernel-core',
  'kernel-modules',
  'kernel-modules-core',
  'kernel-modules-extra',
];
const OTHER_KERNELS: Readonly<Record<Exclude<KernelType, 'default'>, readonly string[]>> = {
  realtime: ['kernel-rt-core', 'kernel-rt-modules', 'kernel-rt-modules-extra'],
  '64k-pages': [
    'kernel-64k-core',
    'kernel-64k-modules',
    'kernel-64k-modules-core',
    'kernel-64k-modules-extra',
  ],
};

/** The differences from the packages of the image; each list is sorted and without duplicates. */
export interface PackageSet {
  /** Installed on top of it. */
  readonly installed: readonly string[];
  /** Packages of the image that are removed. */
  readonly removed: readonly string[];
}

export const noPackages: PackageSet = { installed: [], removed: [] };

/** @returns the packages of extensions; an unknown extension is a package with its name. */
export function extensionPackages(extensions: readonly string[]): readonly string[] {
  return sorted(extensions.flatMap((name) => EXTENSIONS[name] ?? [name]));
}

/** @returns what a config's extensions and kernel type require of a host that installs packages itself. */
export function osPackages({
  extensions,
  kernelType,
}: Pick<NodeConfig, 'extensions' | 'kernelType'>): PackageSet {
  const packages = extensionPackages(extensions);
  if (kernelType === 'default') return { installed: packages, removed: [] };
  return { installed: sorted([...packages, ...OTHER_KERNELS[kernelType]]), removed: sorted(DEFAULT_KERNEL) };
}

/** @returns whether both are equal. */
export function samePackages(a: PackageSet, b: PackageSet): boolean {
  return a.installed.join() === b.installed.join() && a.removed.join() === b.removed.join();
}

/**
 * @returns the differences from the image after replacing the packages that were required before by those required now.
 */
export function changePackages(
  present: PackageSet,
  { remove, add }: { readonly remove: PackageSet; readonly add: PackageSet },
): PackageSet {
  return {
    installed: changed(present.installed, remove.installed, add.installed),
    removed: changed(present.removed, remove.removed, add.removed),
  };
}

function changed(present: readonly string[], remove: readonly string[], add: readonly string[]) {
  return sorted([...without(present, remove), ...add]);
}

/** @returns those of a list that are not in the other. */
export function without(list: readonly string[], other: readonly string[]): readonly string[] {
  return list.filter((each) => !other.includes(each));
}

function sorted(names: readonly string[]): readonly string[] {
  return [...new Set(names)].sort();
}

export const KERNEL_TYPES = ['default', 'realtime', '64k-pages'] as const satisfies readonly KernelType[];

/** @returns whether MCO supports an extension, by its full name. */
export function isKernelType(text: string): text is KernelType {
  return KERNEL_TYPES.some((known) => known === text);
}

/** @returns the kernel type; as in MCO, empty and unknown types are the default (CanonicalizeKernelType). */
export function kernelTypeOf(kernelType: string | undefined): KernelType {
  return kernelType !== undefined && isKernelType(kernelType) ? kernelType : 'default';
}
