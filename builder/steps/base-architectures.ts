import { describeImage, imagesByArchitecture } from '../../image/append.ts';
import { parseManifest } from '../../image/manifest.ts';
import { parseReference } from '../../image/reference.ts';
import type { RegistryClient } from '../../image/registry/registry-client.ts';
import { asBuildFailure } from '../build-failure.ts';

/** The architectures of a pool's nodes, by whether an image can be built for them. */
export interface ArchitecturesByBase {
  readonly built: readonly string[];
  /** The base image has none for them: nodes that report them stay on what they run. */
  readonly left: readonly string[];
}

/**
 * A node of an architecture without a base image must not prevent the build for all others.
 *
 * @param asked.architectures in Go's words. One alone isn't looked up: its build fails with the reason.
 * @returns all as `built` where the base image is for none of them, so that the build says so.
 * @throws BuildFailure
 */
export async function byBase(
  client: RegistryClient,
  { baseImage, architectures }: { readonly baseImage: string; readonly architectures: readonly string[] },
  signal: AbortSignal,
): Promise<ArchitecturesByBase> {
  if (architectures.length < 2) return { built: architectures, left: [] };
  try {
    const has = await basePlatforms(client, baseImage, signal);
    const built = architectures.filter(has);
    if (built.length === 0) return { built: architectures, left: [] };
    return { built, left: architectures.filter((each) => !has(each)) };
  } catch (error) {
    signal.throwIfAborted();
    throw asBuildFailure(error);
  }
}

async function basePlatforms(
  client: RegistryClient,
  baseImage: string,
  signal: AbortSignal,
): Promise<(architecture: string) => boolean> {
  const base = parseReference(baseImage);
  const parsed = parseManifest((await client.getManifest(base, signal)).bytes, baseImage);
  if (parsed.kind === 'index') {
    const images = await imagesByArchitecture(client, base, parsed.index, signal);
    return (architecture) => images.has(architecture);
  }
  const { config } = await describeImage(client, base, '', signal);
  return (architecture) => config.architecture === architecture;
}
