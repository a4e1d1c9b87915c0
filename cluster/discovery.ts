import type { Kind, KubernetesObject } from '../api/object.ts';
import { ApiCalls, type CallOptions } from './api-calls.ts';
import { isNotFound } from './api-client.ts';
import type { Connection } from './connection.ts';

/** What an API server says of a group (meta/v1, APIGroup), as far as it is read here. */
interface ApiGroup {
  readonly preferredVersion?: { readonly version?: string };
  readonly versions?: readonly { readonly version?: string }[];
}

/** What it says of a version of a group (meta/v1, APIResourceList). */
interface ApiResourceList {
  readonly resources?: readonly {
    readonly name?: string;
    readonly kind?: string;
    readonly namespaced?: boolean;
  }[];
}

/** ms for which an answer holds: a provider is upgraded while this process runs. */
const ANSWER_HOLDS_MS = 60_000;

/**
 * Finds out in which version an API server serves a kind (Kubernetes API concepts, "Discovery API"), for kinds that
 * references name without one.
 */
export class Discovery {
  readonly #calls: ApiCalls;
  readonly #answers = new Map<string, { readonly at: number; readonly answer: object | undefined }>();

  constructor(connection: Connection, options: CallOptions = {}) {
    this.#calls = new ApiCalls(connection, options);
  }

  /**
   * @param group not the core group.
   * @param known versions of it that the caller can read, the best first; absent: the one that the server prefers.
   * @returns where the kind is served; undefined where it isn't, or in none of these versions.
   * @throws {ApiError | ApiUnreachable}
   */
  async kindOf<T extends KubernetesObject>(
    group: string,
    kind: string,
    signal: AbortSignal,
    known?: readonly string[],
  ): Promise<Kind<T> | undefined> {
    const served = (await this.#get(`/apis/${encodeURIComponent(group)}`, signal)) as ApiGroup | undefined;
    const versions = (served?.versions ?? []).flatMap(({ version }) => version ?? []);
    const wanted = known ?? [served?.preferredVersion?.version ?? '', ...versions];
    for (const version of wanted.filter((each) => versions.includes(each))) {
      const resource = await this.#resourceOf(group, version, kind, signal);
      if (resource !== undefined) return { group, version, kind, ...resource };
    }
    return undefined;
  }

  async #resourceOf(group: string, version: string, kind: string, signal: AbortSignal) {
    const path = `/apis/${encodeURIComponent(group)}/${encodeURIComponent(version)}`;
    const list = (await this.#get(path, signal)) as ApiResourceList | undefined;
    // A subresource such as machines/status has the same kind.
    const found = list?.resources?.find((each) => each.kind === kind && each.name?.includes('/') === false);
    return found?.name === undefined
      ? undefined
      : { plural: found.name, namespaced: found.namespaced === true };
  }

  async #get(path: string, signal: AbortSignal): Promise<object | undefined> {
    const known = this.#answers.get(path);
    if (known !== undefined && performance.now() - known.at < ANSWER_HOLDS_MS) return known.answer;
    const answer = await this.#ask(path, signal);
    this.#answers.set(path, { at: performance.now(), answer });
    return answer;
  }

  async #ask(path: string, signal: AbortSignal): Promise<object | undefined> {
    try {
      return await readPath(this.#calls, path, signal);
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }
}

/**
 * @returns the version of an API server, such as `v1.35.1`. @throws {ApiError | ApiUnreachable}; Error for an answer
 * without a version.
 */
export async function serverVersion(
  connection: Connection,
  signal: AbortSignal,
  options: CallOptions = {},
): Promise<string> {
  const { gitVersion } = (await readPath(new ApiCalls(connection, options), '/version', signal)) as {
    readonly gitVersion?: unknown;
  };
  if (typeof gitVersion !== 'string') throw new Error('get /version: the answer has no gitVersion');
  return gitVersion;
}

function readPath(calls: ApiCalls, path: string, signal: AbortSignal): Promise<object> {
  return calls.send({ method: 'GET', path, verb: 'get', resource: 'discovery', what: `get ${path}`, signal });
}
