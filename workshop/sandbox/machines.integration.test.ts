import { type ApiServer, startApiServer } from '@shale/apiserver/start.ts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Nodes } from '../../api/kubernetes.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { tokenConnection } from '../../cluster/connection.ts';
import { createApiClient } from '../../cluster/http-api-client.ts';
import { MACHINES, nodeObjects } from './cluster-objects.ts';
import { reportNode } from './machines.ts';

const [{ name }] = MACHINES;
let server: ApiServer;
let client: ApiClient;

beforeAll(async () => {
  server = await startApiServer();
  client = createApiClient(tokenConnection(server.url, server.adminToken, server.caPem));
});
afterAll(() => server.stop());

const isReady = (status: 'True' | 'False') =>
  expect.arrayContaining([expect.objectContaining({ type: 'Ready', status })]);

test('a kubelet that comes up registers its Node where it was deleted, and one that goes down does not', async () => {
  await reportNode(client, name, false);
  expect(await client.find(Nodes, name)).toBeUndefined();
  await reportNode(client, name, true, 'boot-1');
  const first = await client.get(Nodes, name);
  expect(first.metadata.labels).toEqual(
    nodeObjects().find(({ metadata }) => metadata.name === name)?.metadata.labels,
  );
  expect(first.status).toMatchObject({ nodeInfo: { bootID: 'boot-1' }, conditions: isReady('True') });
  await reportNode(client, name, false);
  const down = await client.get(Nodes, name);
  expect(down.metadata.uid).toBe(first.metadata.uid);
  expect(down.status).toMatchObject({ nodeInfo: { bootID: 'boot-1' }, conditions: isReady('False') });
  await client.delete(Nodes, name);
  await reportNode(client, name, true, 'boot-2');
  const again = await client.get(Nodes, name);
  expect(again.metadata.uid).not.toBe(first.metadata.uid);
  expect(again.status).toMatchObject({ nodeInfo: { bootID: 'boot-2' } });
});
