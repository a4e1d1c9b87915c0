import { afterAll, beforeAll, expect, test } from 'vitest';
import { CustomResourceDefinitions } from '../api/kubernetes.ts';
import { deadline } from '../test/fixtures/patience.ts';
import { type ApiServer, startApiServer } from '../workshop/apiserver/start.ts';
import { type Connection, embeddedConnection } from './connection.ts';
import { Discovery, serverVersion } from './discovery.ts';
import { createApiClient } from './http-api-client.ts';

let server: ApiServer;
let connection: Connection;

const version = (name: string) => ({
  name,
  served: true,
  storage: name === 'v1',
  schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
  subresources: { status: {} },
});

beforeAll(async () => {
  server = await startApiServer();
  connection = await embeddedConnection(server.kubeconfig());
  const definition = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'oxen.farm.example.com' },
    spec: {
      group: 'farm.example.com',
      names: { kind: 'Ox', plural: 'oxen', listKind: 'OxList', singular: 'ox' },
      scope: 'Namespaced',
      versions: [version('v1'), version('v1beta1')],
    },
  };
  await createApiClient(connection).create(CustomResourceDefinitions, definition);
});
afterAll(() => {
  connection.agent.destroy();
  return server.stop();
});

const ox = { group: 'farm.example.com', kind: 'Ox', plural: 'oxen', namespaced: true };

test.each([
  ['that the server prefers', 'Ox', undefined, { ...ox, version: 'v1' }],
  ['that the caller knows best', 'Ox', ['v2', 'v1beta1', 'v1'], { ...ox, version: 'v1beta1' }],
  ['of none that the caller knows', 'Ox', ['v2'], undefined],
  ['of a kind that is not there', 'Cow', undefined, undefined],
])('a kind in the version %s', async (_, kind, known, expected) => {
  const discovery = new Discovery(connection);
  expect(await discovery.kindOf(ox.group, kind, deadline(10_000), known)).toEqual(expected);
});

test('a group that is not served has no kinds', async () => {
  expect(await new Discovery(connection).kindOf('no.example.com', 'Ox', deadline(10_000))).toBeUndefined();
});

test('the version of the server', async () => {
  expect(await serverVersion(connection, deadline(10_000))).toMatch(/^v1\.\d+\.\d+/);
});
