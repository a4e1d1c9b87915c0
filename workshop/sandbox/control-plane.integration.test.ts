/** The ways to a control plane: a kubeconfig, given programs, and errors that name what is missing. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type ApiServer, startApiServer } from '@shale/apiserver/start.ts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Nodes, ServiceAccounts } from '../../api/kubernetes.ts';
import { tokenConnection } from '../../cluster/connection.ts';
import { createApiClient } from '../../cluster/http-api-client.ts';
import { startControlPlane } from './control-plane.ts';

let server: ApiServer;
let dir: string;
const { signal } = new AbortController();

beforeAll(async () => {
  server = await startApiServer();
  dir = await mkdtemp(path.join(tmpdir(), 'shale-control-plane-test-'));
});
afterAll(async () => {
  await server.stop();
  await rm(dir, { recursive: true });
});

test('an existing cluster is reached by its kubeconfig, and issues tokens bound to nodes', async () => {
  const file = path.join(dir, 'kubeconfig');
  await writeFile(file, server.kubeconfig(), { mode: 0o600 });
  const plane = await startControlPlane({ kubeconfig: file }, signal);
  expect(`https://${plane.apiServer.host}:${plane.apiServer.port}`).toBe(server.url);
  const client = createApiClient(tokenConnection(server.url, server.adminToken, server.caPem));
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'a' } } as const;
  await client.create(ServiceAccounts, account, { namespace: 'default', signal });
  await client.create(Nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' } }, { signal });
  const token = await plane.createToken({ namespace: 'default', name: 'a', node: 'n' });
  expect(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()).toContain('"node":{"name":"n"');
  await expect(plane.createToken({ namespace: 'default', name: 'b', node: 'n' })).rejects.toThrow(
    'not found',
  );
  await plane.stop();
});

test('a kubeconfig without a cluster is an error that names the file', async () => {
  const file = path.join(dir, 'empty');
  await writeFile(file, 'current-context: x\ncontexts: []\nclusters: []\n');
  await expect(startControlPlane({ kubeconfig: file }, signal)).rejects.toThrow(
    `${file}: the current context x`,
  );
});

test('assets that are not there are an error that names the program', async () => {
  await expect(startControlPlane({ assets: dir }, signal)).rejects.toThrow(`KUBEBUILDER_ASSETS=${dir}: etcd`);
});
