import { z } from 'zod';
import { errorMessage } from '../../api/error-message.ts';
import { OsCommandError, type RunOsCommand } from '../os/os-command.ts';

/** An image as the container runtime lists it. */
export interface RuntimeImage {
  /** By digest: `registry/repository@sha256:…`. */
  readonly names: readonly string[];
  /** Whether the runtime tells the kubelet to leave it where it is (CRI, Image.pinned). */
  readonly isPinned: boolean;
}

/** The node's container runtime, as far as images are concerned. */
export interface ImageRuntime {
  list(signal: AbortSignal): Promise<readonly RuntimeImage[]>;
  /**
   * @returns the directories with its images, as the host knows them. @throws Error where it names none.
   */
  storage(signal: AbortSignal): Promise<readonly string[]>;
  /** @param auth base64 of `user:password`; undefined: what the runtime itself has. @throws OsCommandError */
  pull(image: string, auth: string | undefined, signal: AbortSignal): Promise<void>;
}

const COMMAND_TIMEOUT_MS = 60_000;
const PULL_TIMEOUT_MS = 1_800_000;

const ImageList = z.object({
  images: z.array(
    z.object({ repoDigests: z.array(z.string()).nullish(), pinned: z.boolean().default(false) }),
  ),
});
const FileSystems = z.array(z.object({ fsId: z.object({ mountpoint: z.string().startsWith('/') }) }));
/** In some versions of cri-tools the answer is in `status`. */
const FileSystemInfo = z
  .union([
    z.object({ status: z.object({ imageFilesystems: FileSystems }) }),
    z.object({ imageFilesystems: FileSystems }),
  ])
  .transform((info) => ('status' in info ? info.status.imageFilesystems : info.imageFilesystems));

/**
 * The runtime through crictl(1), which asks whatever runtime `/etc/crictl.yaml` or its defaults name.
 *
 * @param run runs commands in the host's namespaces.
 */
export function crictl(run: RunOsCommand): ImageRuntime {
  const ask = async <T>(words: readonly string[], schema: z.ZodType<T>, signal: AbortSignal): Promise<T> => {
    const text = await run(['crictl', ...words], { timeoutMs: COMMAND_TIMEOUT_MS, signal });
    const parsed = schema.safeParse(jsonOf(text));
    if (parsed.success) return parsed.data;
    throw new Error(`crictl ${words.join(' ')}: the output is not the expected JSON`, {
      cause: parsed.error,
    });
  };
  return {
    list: async (signal) => {
      const { images } = await ask(['images', '--output=json'], ImageList, signal);
      return images.map(({ repoDigests, pinned }) => ({ names: repoDigests ?? [], isPinned: pinned }));
    },
    storage: async (signal) => {
      const systems = await ask(['imagefsinfo', '--output=json'], FileSystemInfo, signal);
      if (systems.length === 0) {
        throw new Error('crictl imagefsinfo: the container runtime names no image filesystem');
      }
      return systems.map(({ fsId }) => fsId.mountpoint);
    },
    pull: async (image, auth, signal) => {
      await run(['crictl', 'pull', image], {
        timeoutMs: PULL_TIMEOUT_MS,
        // Everybody on the host may read a command line; the environment is root's.
        ...(auth === undefined ? {} : { env: { CRICTL_AUTH: auth } }),
        signal,
      });
    },
  };
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The schema says what was expected.
    return undefined;
  }
}

/** What prevents a command: the line that says it, for people. */
export function whyOf(error: unknown): string {
  if (error instanceof OsCommandError && error.code === 'ENOENT') {
    return `${error.command[0]} is not installed on the node; images can only be pinned with it`;
  }
  return errorMessage(error);
}
