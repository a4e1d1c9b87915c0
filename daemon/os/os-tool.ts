import type { RunOsCommand } from './os-command.ts';

/** The tools that Shale can keep a host's operating system by. */
export const BACKENDS = ['bootc', 'rpm-ostree', 'ostree'] as const;
export type BackendName = (typeof BACKENDS)[number];

/** What keeps a host's operating system. */
export interface OsTool {
  readonly name: BackendName;
  /** Absent where the tool doesn't say. */
  readonly version?: string;
  /** Whether it puts packages on top of an image. */
  readonly installsPackages: boolean;
}

const TIMEOUT_MS = 30_000;
/** bootc says `bootc 1.16.0`; the two others `Version: '2022.7'` in a text of several lines. */
const VERSION = /^bootc (?<bootc>\S{1,64})\s*$|^\s*Version: '(?<ostree>[^']{1,64})'/m;

/** @returns what a tool's `--version` says of its version; undefined for other words. */
export function parseVersion(text: string): string | undefined {
  const { bootc, ostree } = VERSION.exec(text)?.groups ?? {};
  return bootc ?? ostree;
}

/**
 * @param run runs commands on the host.
 * @returns asks a tool for its version, once: another one comes with a reboot.
 */
export function osTool(
  run: RunOsCommand,
  { name, installsPackages }: Omit<OsTool, 'version'>,
): (signal: AbortSignal) => Promise<OsTool> {
  let known: OsTool | undefined;
  return async (signal) => {
    known ??= { ...(await askTool(run, name, signal)), installsPackages };
    return known;
  };
}

/** For an admin's eyes only, so a tool that doesn't say is none to fail for. */
async function askTool(
  run: RunOsCommand,
  name: BackendName,
  signal: AbortSignal,
): Promise<Omit<OsTool, 'installsPackages'>> {
  const text = await run([name, '--version'], { timeoutMs: TIMEOUT_MS, signal }).catch(() => '');
  signal.throwIfAborted();
  const version = parseVersion(text);
  return { name, ...(version === undefined ? {} : { version }) };
}
