/** Two writers of one object at once, on a server with resourceVersions: neither takes back what the other wrote. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ConfigMaps } from '../../api/kubernetes.ts';
import { tokenConnection } from '../../cluster/connection.ts';
import { createApiClient } from '../../cluster/http-api-client.ts';
import { updateAnnotation } from '../../cluster/update-object.ts';
import { type ApiServer, startApiServer } from '../../workshop/apiserver/start.ts';

const NOTE = 'shale.dev/test';
const where = { namespace: 'default' };
let server: ApiServer;
beforeAll(async () => {
  server = await startApiServer();
});
afterAll(() => server.stop());

test('writers that saw the same object take nothing of each other back', async () => {
  const client = createApiClient(tokenConnection(server.url, server.adminToken, server.caPem));
  const metadata = { name: 'shared', ...where };
  const seen = await client.create(ConfigMaps, { apiVersion: 'v1', kind: 'ConfigMap', metadata }, where);
  const write = (part: string) =>
    updateAnnotation(client, ConfigMaps, seen, {
      name: NOTE,
      compute: (before = '') => (before.includes(part) ? before : `${before}${part}`),
    });
  await Promise.all(['a', 'b', 'c', 'd'].map(write));
  const found = await client.get(ConfigMaps, 'shared', where);
  expect([...(found.metadata.annotations?.[NOTE] ?? '')].sort()).toEqual(['a', 'b', 'c', 'd']);
  const { resourceVersion } = found.metadata;
  await write('a');
  expect((await client.get(ConfigMaps, 'shared', where)).metadata.resourceVersion).toBe(resourceVersion);
});
