/** A Boot Loader Specification Type #1 entry as ostree writes it for one deployment. */
export interface BootloaderEntry {
  /** Higher is earlier in the boot order; ostree's own ordering, and its only meaning there. */
  readonly version: number;
  readonly title: string;
  /** Without `ostree=`. */
  readonly kernelArguments: readonly string[];
  /** Value of `ostree=`: the link to the deployment, absolute in the sysroot (ostree-prepare-root(1)). */
  readonly deploymentLink: string;
}

/** An entry without what ostree always writes: the sysroot is damaged or not ostree's. */
export class BootloaderEntryError extends Error {
  override readonly name = 'BootloaderEntryError';
}

/**
 * Parses `boot/loader/entries/ostree-<n>-<os>.conf`.
 *
 * @param file its name, for messages.
 * @returns the entry, or nothing when it isn't ostree's (no `ostree=` argument).
 * @throws BootloaderEntryError when the version is missing.
 */
export function parseBootloaderEntry(file: string, text: string): BootloaderEntry | undefined {
  const fields = new Map<string, string>();
  for (const line of text.split('\n')) {
    const match = /^([a-z-]+)\s+(.*)$/.exec(line);
    if (match?.[1] !== undefined) fields.set(match[1], (match[2] ?? '').trim());
  }
  const all = splitKernelArguments(fields.get('options') ?? '');
  const link = all.find((argument) => argument.startsWith(OSTREE_ARGUMENT));
  if (link === undefined) return undefined;
  const version = Number(fields.get('version'));
  if (!Number.isSafeInteger(version)) {
    throw new BootloaderEntryError(
      `${file}: version: expected a number, got ${fields.get('version') ?? 'nothing'}`,
    );
  }
  return {
    version,
    title: fields.get('title') ?? '',
    kernelArguments: all.filter((argument) => argument !== link),
    deploymentLink: link.slice(OSTREE_ARGUMENT.length),
  };
}

const OSTREE_ARGUMENT = 'ostree=';

/** Splits at white space outside of double quotes, which are kept (kernel: next_arg in lib/cmdline.c). */
export function splitKernelArguments(text: string): readonly string[] {
  return text.match(/(?:[^\s"]|"[^"]*"?)+/g) ?? [];
}
