import { readFile } from 'node:fs/promises';
import { requestToken, type Send } from '@shale/apiserver/control-plane/request-token.ts';
import { parse } from 'yaml';
import { z } from 'zod';
import { type Connection, kubeconfigConnection } from '../../../cluster/connection.ts';
import { readJson, send } from '../../../cluster/http-request.ts';
import type { ControlPlane } from './control-plane.ts';

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
 * A cluster that is there already: the sandbox brings its nodes and its processes to it.
 *
 * @param file a kubeconfig whose current context names the cluster and holds its CA, as `kubectl config view --minify
 *   --flatten` writes it.
 * @throws Error that names the file and what it lacks.
 */
export async function useExistingCluster(file: string): Promise<ControlPlane> {
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
      ...(body === undefined ? {} : { body }),
    });
    return { status: response.statusCode ?? 0, body: await readJson(response) };
  };
}
