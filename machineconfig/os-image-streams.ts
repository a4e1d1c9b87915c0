import type { MachineConfigPool } from '../api/machine-config-pool.ts';
import { OS_IMAGE_STREAMS_CONFIG_MAP } from '../api/names.ts';
import { DigestedPullspecSchema } from '../api/references.ts';
import type { ConfigProblems, Problem } from './problem.ts';

/** The images of the cluster's streams by the streams' names: data of the ConfigMap. */
export type OSImageStreams = Readonly<Record<string, string>>;

/** The stream of a pool. */
export type PoolStream =
  | { readonly kind: 'none' }
  | {
      readonly kind: 'found';
      readonly name: string;
      readonly image: string;
      /** Worker names it, and the pool itself names none. */
      readonly isInherited: boolean;
    }
  | { readonly kind: 'refused'; readonly problem: Problem };

type StreamedPool = Pick<MachineConfigPool, 'metadata' | 'spec'>;

/** The pool whose stream the custom ones inherit. */
export const STREAM_PARENT = 'worker';

/** The pools that OpenShift installs; every other one is custom. */
const STANDARD_POOLS: ReadonlySet<string> = new Set(['master', STREAM_PARENT, 'arbiter']);

/** @returns whether a pool has worker's stream: a custom one that names none (MCO). */
export function inheritsStream({ metadata, spec }: StreamedPool): boolean {
  return spec.osImageStream === undefined && !STANDARD_POOLS.has(metadata.name);
}

/**
 * Which image a pool is based on by its stream. Without the stream's image the pool isn't rendered: any other image is
 * not what was asked for.
 *
 * @param streams undefined where the cluster has no such ConfigMap.
 * @param worker the pool of that name; undefined where there is none.
 */
export function streamOf(
  pool: StreamedPool,
  streams: OSImageStreams | undefined,
  worker: StreamedPool | undefined,
): PoolStream {
  const isInherited = inheritsStream(pool);
  const named = isInherited ? worker : pool;
  const name = named?.spec.osImageStream?.name;
  if (named === undefined || name === undefined) return { kind: 'none' };
  const path = `pool/${named.metadata.name}: spec.osImageStream.name`;
  const heir = isInherited ? `, which pool ${pool.metadata.name} inherits,` : '';
  const image = streams !== undefined && Object.hasOwn(streams, name) ? streams[name] : undefined;
  if (image === undefined) {
    const names = Object.keys(streams ?? {}).sort();
    return {
      kind: 'refused',
      problem: {
        path,
        reason: `${JSON.stringify(name)}${heir} is not a key of the ConfigMap ${OS_IMAGE_STREAMS_CONFIG_MAP}`,
        expected:
          names.length === 0
            ? 'that ConfigMap, in the namespace of Shale, with the image of each stream by its name'
            : names.join(', '),
      },
    };
  }
  const trimmed = image.trim();
  if (DigestedPullspecSchema.safeParse(trimmed).success)
    return { kind: 'found', name, image: trimmed, isInherited };
  return {
    kind: 'refused',
    problem: {
      path,
      reason: `the ConfigMap ${OS_IMAGE_STREAMS_CONFIG_MAP} has ${JSON.stringify(trimmed.slice(0, 100))} for ${JSON.stringify(name)}${heir.slice(0, -1)}`,
      // A stream is shared by pools: all of its nodes run the same image, whenever they are updated.
      expected: 'an image by digest: host[:port]/repository@sha256:<64 hexadecimal digits>',
    },
  };
}

/** @returns why a pool can't be rendered with its stream; undefined where it can. */
export function streamProblem(
  pool: StreamedPool,
  streams: OSImageStreams | undefined,
  worker: StreamedPool | undefined,
): ConfigProblems | undefined {
  const stream = streamOf(pool, streams, worker);
  return stream.kind === 'refused' ? { machineConfig: '', problems: [stream.problem] } : undefined;
}

/** @param machineConfig the one whose osImageURL counts. @returns that the pool's stream has no effect. */
export function overridesStream(machineConfig: string, pool: string, stream: string): ConfigProblems {
  const reason = `overrides the stream ${JSON.stringify(stream)} of pool ${pool}`;
  return {
    machineConfig,
    problems: [{ path: 'spec.osImageURL', reason, expected: 'either of them to be omitted' }],
  };
}
