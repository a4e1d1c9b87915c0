import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pino from 'pino';
import type { Kind, KubernetesObject } from '../../api/object.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { tokenConnection } from '../../cluster/connection.ts';
import { createApiClient } from '../../cluster/http-api-client.ts';
import { startApiServer } from '../../sandbox/apiserver/start.ts';
import { applyObjects } from '../../sandbox/manifests/apply.ts';
import { readKustomization } from '../../sandbox/manifests/kustomization.ts';

/** An API server with Shale's manifests and nothing that runs. */
export interface ClusterUnderTest {
  /** The administrator's. */
  readonly client: ApiClient;
  /** @returns a client of one of Shale's service accounts, with its rights alone. */
  clientOf(serviceAccount: string): ApiClient;
  /** @returns how a process of that service account comes in. */
  access(serviceAccount: string): { readonly url: string; readonly caPem: string; readonly token: string };
  /** @returns a kubeconfig of the administrator. */
  kubeconfig(): string;
  stop(): Promise<void>;
}

export const NAMESPACE = 'shale-system';
/** Tests tell what they expect; what a process logs beside is of no use to them. */
export const quiet = pino({ level: 'silent' });
const MANIFESTS = path.join(import.meta.dirname, '../../manifests/base');

/** Milliseconds between two looks. */
const POLL_MS = 20;

/** Starts one, on the embedded API server. */
export async function startClusterUnderTest(signal: AbortSignal): Promise<ClusterUnderTest> {
  const server = await startApiServer();
  const connect = (token: string) => createApiClient(tokenConnection(server.url, token, server.caPem));
  const client = connect(server.adminToken);
  await applyObjects(client, await readKustomization(MANIFESTS), { log: quiet, signal });
  return {
    client,
    clientOf: (name) => connect(server.createToken({ namespace: NAMESPACE, name })),
    access: (name) => ({
      url: server.url,
      caPem: server.caPem,
      token: server.createToken({ namespace: NAMESPACE, name }),
    }),
    kubeconfig: () => server.kubeconfig(),
    stop: () => server.stop(),
  };
}

/**
 * Looks at one object until a check holds.
 *
 * @throws Error with the object's last state when it doesn't hold in time.
 */
export async function seen<T extends KubernetesObject>(
  client: ApiClient,
  kind: Kind<T>,
  name: string,
  holds: (object: T) => boolean,
  deadlineMs = 30_000,
): Promise<T> {
  const deadline = AbortSignal.timeout(deadlineMs);
  let last: T | undefined;
  while (!deadline.aborted) {
    last = await client.find(kind, name, { signal: deadline }).catch(() => last);
    if (last !== undefined && holds(last)) return last;
    await delay(POLL_MS, undefined, { signal: deadline }).catch(() => undefined);
  }
  throw new Error(
    `${kind.kind} ${name} did not become what was waited for: ${JSON.stringify(last?.['status' as keyof T])}`,
  );
}
