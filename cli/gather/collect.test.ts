import { afterEach, expect, test } from 'vitest';
import { tokenConnection } from '../../cluster/connection.ts';
import { createApiClient } from '../../cluster/http-api-client.ts';
import { deadline } from '../../test/fixtures/patience.ts';
import { type RecordingServer, startRecordingServer } from '../../test/fixtures/scripted-server.ts';
import { collect } from './collect.ts';

const NAMESPACE = 'shale-system';
const PODS = `/api/v1/namespaces/${NAMESPACE}/pods`;
const POD = {
  metadata: { name: 'shale-operator-0', namespace: NAMESPACE },
  spec: { containers: [{ name: 'operator' }] },
  status: { containerStatuses: [{ name: 'operator', restartCount: 1 }] },
};

let server: RecordingServer;
afterEach(() => server.stop());

test('logs are collected, and what can not be read is listed without stopping the others', async () => {
  server = await startRecordingServer((request, response) => {
    const url = new URL(request.url ?? '', 'http://here');
    const json = (status: number, body: object) => response.writeHead(status).end(JSON.stringify(body));
    if (url.pathname === PODS) json(200, { items: [POD] });
    else if (url.pathname === `${PODS}/shale-operator-0/log`) {
      const { container, previous } = Object.fromEntries(url.searchParams);
      if (previous === 'true') json(400, { message: 'previous terminated container not found' });
      else response.end(`log of ${container}: GET https://u:p@h/ failed\n`);
    } else if (url.pathname.endsWith('/machineconfignodes')) {
      json(200, { items: ['a', 'b'].map((name) => ({ metadata: { name }, spec: {} })) });
    } else if (url.pathname === '/api/v1/nodes/a/proxy/logs/') {
      const unit = url.searchParams.get('query');
      response.end(unit === 'kubelet' ? 'kubelet started with --token abc\n' : '-- No entries --\n');
    } else if (url.pathname === '/api/v1/nodes/b/proxy/logs/') {
      json(403, { message: 'nodes "b" is forbidden' });
    } else if (url.pathname.endsWith('/secrets')) json(403, { message: 'secrets is forbidden' });
    else json(200, { items: [] });
  });
  const connection = tokenConnection(server.url, 'token', '');
  const places = { namespace: NAMESPACE, leaseNamespace: 'medik8s-leases' };
  const signal = deadline(10_000);
  const client = createApiClient(connection);
  const { files, problems } = await collect({ client, connection, places, signal });
  expect(files.find(({ name }) => name.startsWith('logs/'))).toEqual({
    name: 'logs/shale-operator-0/operator.log',
    text: 'log of operator: GET https://…@h/ failed\n',
  });
  expect(files.map(({ name }) => name)).toContain(`objects/pods/${NAMESPACE}/shale-operator-0.yaml`);
  expect(files.filter(({ name }) => name.startsWith('journals/'))).toEqual([
    { name: 'journals/a/kubelet.log', text: 'kubelet started with --token …\n' },
  ]);
  expect(problems.toSorted()).toEqual([
    'journals of node b: HTTP 403: nodes "b" is forbidden',
    'log of shale-operator-0/operator.previous: HTTP 400: previous terminated container not found',
    'secrets: list secrets: secrets is forbidden',
  ]);
});
