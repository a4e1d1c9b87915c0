import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { ControlPlane as OwnControlPlane } from '@shale/apiserver/control-plane/control-plane.ts';
import { requestToken, type Send } from '@shale/apiserver/control-plane/request-token.ts';
import { startControlPlane as startOwn } from '@shale/apiserver/control-plane/start.ts';
import type { AuditEvent } from '@shale/apiserver/http/request-listener.ts';
import { parse } from 'yaml';
import { z } from 'zod';
import { present } from '../../api/present.ts';
import { type Connection, kubeconfigConnection, tokenConnection } from '../../cluster/connection.ts';
import { readJson, send } from '../../cluster/http-request.ts';
import type { Kubelets } from './workloads/kubelets.ts';

/** The API server of a sandbox, whichever it is. */
export type ControlPlane = OwnControlPlane<ClusterAccess>;

export interface ControlPlaneChoice {
  /** Directory with kube-apiserver and etcd, as setup-envtest lays them out (KUBEBUILDER_ASSETS). */
  readonly assets?: string | undefined;
  /** Kubeconfig of a cluster that exists already. */
  readonly kubeconfig?: string | undefined;
  /** File for the audit log of the embedded API server; the others have their own. */
  readonly auditLog?: string | undefined;
  /** What the embedded API server reads the logs of pods by. */
  readonly kubelets?: Kubelets;
}

/**
 * Starts the API server that was chosen: a cluster's own, the real one where its programs are given, else the embedded.
 *
 * @throws Error that says what is missing.
 */
export async function startControlPlane(
  { assets, kubeconfig, auditLog, kubelets }: ControlPlaneChoice,
  signal: AbortSignal,
): Promise<ControlPlane> {
  if (kubeconfig !== undefined) return useExistingCluster(kubeconfig);
  const onRequest = auditLog === undefined || assets !== undefined ? undefined : createAuditLog(auditLog);
  const readContainerLog = kubelets === undefined ? undefined : kubelets.readContainerLog;
  const own = await startOwn({ assets, onRequest, readContainerLog }, signal);
  return { ...own, access: { kind: 'token', ...own.access } };
}

/** How clients reach the API server of a sandbox; kept in the sandbox's record. */
export const ClusterAccess = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('token'), url: z.string(), token: z.string(), caPem: z.string() }),
  z.object({ kind: z.literal('kubeconfig'), path: z.string() }),
]);
export type ClusterAccess = z.infer<typeof ClusterAccess>;

/** @returns the connection. @throws Error when the kubeconfig can't be read. */
export async function connectWith(access: ClusterAccess): Promise<Connection> {
  switch (access.kind) {
    case 'token':
      return tokenConnection(access.url, access.token, access.caPem);
    case 'kubeconfig':
      return kubeconfigConnection({ path: access.path });
  }
}

/** @returns the version of an API server, which its nodes have, too: `v1.34.0`. @throws Error when it doesn't say. */
export async function kubernetesVersion(connection: Connection, signal: AbortSignal): Promise<string> {
  const response = await send(connection, { method: 'GET', path: '/version', signal });
  return z.object({ gitVersion: z.string() }).parse(await readJson(response)).gitVersion;
}

const Kubeconfig = z.object({
  'current-context': z.string(),
  contexts: z.array(z.object({ name: z.string(), context: z.object({ cluster: z.string() }) })),
  clusters: z.array(
    z.object({
      name: z.string(),
      cluster: z.object({ server: z.url(), 'certificate-authority-data': z.string() }),
    }),
  ),
});

/**
 * An existing cluster: the sandbox adds its nodes and its processes to it.
 *
 * @param file a kubeconfig whose current context names the cluster and holds its CA, as `kubectl config view --minify
 *   --flatten` writes it.
 * @throws Error that names the file and what it lacks.
 */
async function useExistingCluster(file: string): Promise<ControlPlane> {
  const text = await readFile(file, 'utf8');
  const { server, caPem } = clusterOf(file, text);
  const connection = await kubeconfigConnection({ path: file });
  const url = new URL(server);
  return {
    description: `the cluster at ${url.host}`,
    hasControllers: true,
    access: { kind: 'kubeconfig', path: file },
    apiServer: { host: url.hostname, port: Number(url.port || 443), caPem },
    kubeconfig: () => text,
    createToken: (account) => requestToken(sendOver(connection), account),
    // It was there before the sandbox, and stays.
    stop: async () => undefined,
  };
}

function clusterOf(file: string, text: string): { readonly server: string; readonly caPem: string } {
  const parsed = Kubeconfig.safeParse(parse(text));
  if (!parsed.success) throw new Error(`${file}: ${z.prettifyError(parsed.error)}`);
  const { contexts, clusters, 'current-context': current } = parsed.data;
  const context = contexts.find(({ name }) => name === current);
  const cluster = clusters.find(({ name }) => name === context?.context.cluster)?.cluster;
  if (cluster === undefined)
    throw new Error(`${file}: the current context ${current} names no cluster of the file`);
  const caPem = Buffer.from(cluster['certificate-authority-data'], 'base64').toString('utf8');
  return { server: cluster.server, caPem };
}

/** A kubeconfig's user may be a client certificate or a program that gives tokens. */
function sendOver(connection: Connection): Send {
  return async (method, path, body, signal) => {
    const response = await send(connection, {
      method,
      path,
      signal,
      ...present({ body }),
    });
    return { status: response.statusCode ?? 0, body: await readJson(response) };
  };
}

/**
 * Starts an audit log: one line of JSON for each request, with its user and the status of the response. Equal requests
 * are logged once: the log shows the permissions in use, not how often they are used.
 *
 * @param file overwritten. @returns what to call for every request. @throws Error when the file can't be written.
 */
function createAuditLog(file: string): (event: AuditEvent) => void {
  const logged = new Set<string>();
  writeFileSync(file, '');
  return (event) => {
    const line = JSON.stringify(event);
    if (logged.has(line)) return;
    logged.add(line);
    // At once: the log is whole however the sandbox ends.
    appendFileSync(file, `${line}\n`);
  };
}

/** @returns the events of an audit log that createAuditLog began. */
export function readAuditLog(file: string): AuditEvent[] {
  const lines = readFileSync(file, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as AuditEvent);
}
