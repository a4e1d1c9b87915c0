import type { KernelType } from './node-config.ts';

export const KERNEL_TYPES = ['default', 'realtime', '64k-pages'] as const satisfies readonly KernelType[];

/** @returns whether it is one that MCO knows, by its full name. */
export function isKernelType(text: string): text is KernelType {
  return KERNEL_TYPES.some((known) => known === text);
}

/** @returns the kernel type; MCO takes empty and unknown ones for the default (CanonicalizeKernelType). */
export function kernelTypeOf(kernelType: string | undefined): KernelType {
  return kernelType !== undefined && isKernelType(kernelType) ? kernelType : 'default';
}

/** An argument: anything but white space of the C locale, or anything at all between double quotes. */
const ARGUMENT = /(?:[^ \f\n\r\t\v"]|"[^"]*(?:"|$))+/g;

/**
 * Splits entries of `spec.kernelArguments` into single arguments as the kernel does (next_arg in lib/cmdline.c): at
 * white space outside of double quotes. Quotes stay, and there is no escape for them.
 */
export function splitKernelArguments(entries: readonly string[]): string[] {
  return entries.flatMap((entry) => entry.match(ARGUMENT) ?? []);
}
