import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Kind, KubernetesObject } from '../../api/object.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { tokenConnection } from '../../cluster/connection.ts';
import { createApiClient } from '../../cluster/http-api-client.ts';
import { connectWith, startControlPlane } from '../../workshop/sandbox/control-plane.ts';
import { applyObjects } from '../../workshop/sandbox/manifests/apply.ts';
import { readKustomization } from '../../workshop/sandbox/manifests/kustomization.ts';
import { keptLogger } from '../fixtures/kept-logs.ts';
import { deadline } from '../fixtures/patience.ts';

export interface Access {
  readonly url: string;
  readonly caPem: string;
  readonly token: string;
}

/** An API server with Shale's manifests and nothing that runs. */
export interface ClusterUnderTest {
  /** The administrator's. */
  readonly client: ApiClient;
  /** @returns a client of one of Shale's service accounts, with its rights alone. */
  clientOf(serviceAccount: string): Promise<ApiClient>;
  /** @returns how a process of that service account comes in. */
  access(serviceAccount: string): Promise<Access>;
  /** @returns a kubeconfig of the administrator. */
  kubeconfig(): string;
  stop(): Promise<void>;
}

export const NAMESPACE = 'shale-system';
/** What the processes of a test log, of which a failure prints the end. */
export const log = keptLogger('the processes under test');
const MANIFESTS = path.join(import.meta.dirname, '../../manifests/base');

/**
 * Milliseconds between two looks, at first and at most: a look costs the API server, in the same process, a request.
 */
const PAUSE_MS = { first: 20, most: 100 };

/**
 * Starts one: the real API server where KUBEBUILDER_ASSETS names one, else the embedded.
 *
 * @param change what each object of the manifests is installed as; absent: as it is.
 */
export async function startClusterUnderTest(
  signal: AbortSignal,
  change: (object: KubernetesObject) => KubernetesObject = (object) => object,
): Promise<ClusterUnderTest> {
  const plane = await startControlPlane({ assets: process.env['KUBEBUILDER_ASSETS'] }, signal);
  try {
    const { caPem } = plane.apiServer;
    const url = `https://${plane.apiServer.host}:${plane.apiServer.port}`;
    const access = async (name: string) => ({
      url,
      caPem,
      token: await plane.createToken({ namespace: NAMESPACE, name }),
    });
    const client = createApiClient(await connectWith(plane.access));
    await applyObjects(client, (await readKustomization(MANIFESTS)).map(change), { log, signal });
    return {
      client,
      clientOf: async (name) => createApiClient(tokenConnection(url, (await access(name)).token, caPem)),
      access,
      kubeconfig: () => plane.kubeconfig(),
      stop: () => plane.stop(),
    };
  } catch (error) {
    await plane.stop();
    throw error;
  }
}

/**
 * Looks at one object until a check holds.
 *
 * @throws Error with the object's last state when it doesn't hold in time.
 */
export function seen<T extends KubernetesObject>(
  client: ApiClient,
  kind: Kind<T>,
  name: string,
  holds: (object: T) => boolean,
  deadlineMs?: number,
): Promise<T> {
  const find = (signal: AbortSignal) => client.find(kind, name, { signal });
  return seenBy(`${kind.kind} ${name}`, find, holds, deadlineMs);
}

/**
 * Looks at an object until a check holds; which one it is may change meanwhile.
 *
 * @param what it is, for the error. @param find it as things are now.
 * @throws Error with the object's last state when it doesn't hold in time.
 */
export async function seenBy<T extends KubernetesObject>(
  what: string,
  find: (signal: AbortSignal) => Promise<T | undefined>,
  holds: (object: T) => boolean,
  deadlineMs = 60_000,
): Promise<T> {
  const end = deadline(deadlineMs);
  let last: T | undefined;
  let pauseMs = PAUSE_MS.first;
  while (!end.aborted) {
    last = await find(end).catch(() => last);
    if (last !== undefined && holds(last)) return last;
    await delay(pauseMs, undefined, { signal: end }).catch(() => undefined);
    pauseMs = Math.min(pauseMs * 1.5, PAUSE_MS.most);
  }
  throw new Error(
    `${what} did not become what was waited for: ${JSON.stringify(last?.['status' as keyof T])}`,
  );
}
