import { present } from '../../api/present.ts';
import { OsCommandError, type RunOsCommand } from './os-command.ts';

/** The tools that Shale can keep a host's operating system by. */
export const BACKENDS = ['bootc', 'rpm-ostree', 'ostree'] as const;
export type BackendName = (typeof BACKENDS)[number];

/** What keeps a host's operating system. */
export interface OsTool {
  readonly name: BackendName;
  /** Absent where the tool doesn't report it. */
  readonly version?: string;
  /** Why the version isn't known, where asking for it failed. */
  readonly versionUnknown?: string;
  /** Whether it puts packages on top of an image. */
  readonly installsPackages: boolean;
  /** Whether it sets kernel arguments beyond an image's own. Absent where it does. */
  readonly setsKernelArguments?: boolean;
  /** Whether an image can be applied to the running system. Absent where it can. */
  readonly appliesLive?: boolean;
}

const TIMEOUT_MS = 30_000;
/** bootc says `bootc 1.16.0`; the two others `Version: '2022.7'` in a text of several lines. */
const VERSION = /^bootc (?<bootc>\S{1,64})[ \t]*\r?$|^[ \t]*Version: '(?<ostree>[^']{1,64})'/m;

/** @returns what a tool's `--version` says of its version; undefined for other words. */
export function parseVersion(text: string): string | undefined {
  const { bootc, ostree } = VERSION.exec(text)?.groups ?? {};
  return bootc ?? ostree;
}

/**
 * @param run runs commands on the host.
 * @returns asks a tool for its version, once: another one comes with a reboot. A tool that could not be asked is asked
 *   again the next time.
 */
export function osTool(
  run: RunOsCommand,
  known: Omit<OsTool, 'version' | 'versionUnknown'>,
): (signal: AbortSignal) => Promise<OsTool> {
  let tool: OsTool | undefined;
  return async (signal) => {
    if (tool !== undefined) return tool;
    const asked = { ...known, ...(await askVersion(run, known.name, signal)) };
    if (asked.versionUnknown === undefined) tool = asked;
    return asked;
  };
}

/**
 * Only an admin reads the version, so a node goes on without it; why it isn't known is reported.
 *
 * @throws what isn't the command's own failure.
 */
async function askVersion(
  run: RunOsCommand,
  name: BackendName,
  signal: AbortSignal,
): Promise<Pick<OsTool, 'version' | 'versionUnknown'>> {
  try {
    return present({
      version: parseVersion(await run([name, '--version'], { timeoutMs: TIMEOUT_MS, signal })),
    });
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof OsCommandError)) throw error;
    return { versionUnknown: error.message };
  }
}
