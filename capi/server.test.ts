import { once } from 'node:events';
import { connect } from 'node:tls';
import { pino } from 'pino';
import { expect, onTestFinished, test, vi } from 'vitest';
import { callHook } from '../test/fixtures/capi/hook-client.ts';
import {
  canUpdateMachineRequest,
  canUpdateMachineSetRequest,
  updateMachineRequest,
} from '../test/fixtures/capi/hook-requests.ts';
import { machineObjects } from '../test/fixtures/capi/machine-objects.ts';
import { documentedSchema } from '../test/fixtures/capi/runtime-sdk.ts';
import { drivenBy, workers, workload } from '../test/fixtures/capi/workload.ts';
import { createAuthority } from '../x509/certificate.ts';
import { type Clusters, NotKnownNow } from './clusters/clusters.ts';
import { DISCOVERY_PATH, type Hook, pathOf } from './contract/hooks.ts';
import { readMachineSettings } from './contract/settings.ts';
import { UpdateHooks } from './hooks.ts';
import { machinePartsOf } from './mapping/parts-of.ts';
import { ExtensionMetrics } from './metrics.ts';
import { startHookServer } from './server.ts';

const authority = createAuthority('capi', new Date());
const issued = () => {
  const { certPem, keyPem } = authority.issueServer({ dns: [], ipv4: ['127.0.0.1'] });
  return { cert: Buffer.from(certPem), key: Buffer.from(keyPem) };
};

/** The hooks over HTTPS, with a workload cluster that is known. */
async function serve(more: Partial<Clusters> = {}) {
  const clusters = {
    readWorkload: vi.fn<Clusters['readWorkload']>(async () => workload()),
    updateMachine: vi.fn<Clusters['updateMachine']>(async () => ({ kind: 'done', message: 'updated' })),
    reportNewMachines: vi.fn<Clusters['reportNewMachines']>(async () => undefined),
    readOthers: vi.fn<Clusters['readOthers']>(async () => [
      { kind: 'known', parts: machinePartsOf(before, readMachineSettings({})) },
    ]),
    ...more,
  };
  const lines: string[] = [];
  const log = pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) });
  const metrics = new ExtensionMetrics();
  const hooks = new UpdateHooks({ clusters, log, metrics });
  const server = await startHookServer({ hooks, tls: issued(), port: 0, host: '127.0.0.1', log });
  onTestFinished(() => server.close());
  const call = (path: string, body: string | Buffer, method?: string) =>
    callHook({ port: server.port, ca: authority.caPem, path, body, ...(method && { method }) });
  return {
    clusters,
    server,
    metrics: () => metrics.registry.metrics(),
    log: () => lines.join(''),
    call,
    /** @returns the response of a hook, which is as documented. */
    ask: async (hook: Hook, body: object) => {
      const { status, text } = await call(pathOf(hook), JSON.stringify(body));
      expect(status).toBe(200);
      const { affectsAvailability, ...response } = JSON.parse(text);
      documentedSchema(pathOf(hook).replace(/[^/]+$/, '{name}'), 'response').parse(response);
      return { ...response, affectsAvailability };
    },
  };
}

const before = machineObjects({ bootstrap: { files: [{ path: '/etc/live', content: 'a' }] } });
const after = machineObjects({ bootstrap: { files: [{ path: '/etc/live', content: 'b' }] } });
const mounted = machineObjects({ bootstrap: { mounts: [['a']] } });
const decoded = (patch: { readonly patch: string }) =>
  JSON.parse(Buffer.from(patch.patch, 'base64').toString());

test('answers are counted by hook and answer', async () => {
  const { ask, metrics } = await serve({ readWorkload: () => Promise.reject(new NotKnownNow('away')) });
  await ask('UpdateMachine', updateMachineRequest(after));
  await ask('CanUpdateMachineSet', canUpdateMachineSetRequest(before, after));
  const counts = (await metrics()).split('\n').filter((line) => line.includes('seconds_count'));
  expect(counts).toEqual([
    'shale_cluster_api_hook_duration_seconds_count{hook="UpdateMachine",answer="done"} 1',
    'shale_cluster_api_hook_duration_seconds_count{hook="CanUpdateMachineSet",answer="failure"} 1',
  ]);
});

test('discovery is as documented', async () => {
  const { call } = await serve();
  const { status, text } = await call(DISCOVERY_PATH, '{}');
  expect(status).toBe(200);
  documentedSchema(DISCOVERY_PATH, 'response').parse(JSON.parse(text));
});

test('a MachineSet whose file changes live is patched, and pods are not affected', async () => {
  const { ask, clusters } = await serve();
  const response = await ask('CanUpdateMachineSet', canUpdateMachineSetRequest(before, after));
  expect(response).toMatchObject({ status: 'Success', affectsAvailability: false });
  expect(decoded(response.bootstrapConfigTemplatePatch)).toEqual({
    spec: { template: { spec: { files: [{ path: '/etc/live', content: 'b' }] } } },
  });
  expect(clusters.readWorkload).toHaveBeenCalledWith(
    { namespace: 'default', name: 'one' },
    expect.anything(),
  );
  expect(clusters.reportNewMachines).not.toHaveBeenCalled();
});

test('a Machine of a control plane is patched in its own spec', async () => {
  const plane = { kind: 'KubeadmControlPlane', namespace: 'default', name: 'plane' };
  const { ask } = await serve({ readWorkload: async () => workload([drivenBy(plane)]) });
  const response = await ask('CanUpdateMachine', canUpdateMachineRequest(before, after));
  expect(response).toMatchObject({ status: 'Success', affectsAvailability: false });
  expect(decoded(response.bootstrapConfigPatch)).toEqual({
    spec: { files: [{ path: '/etc/live', content: 'b' }] },
  });
});

test('the only Machine of a control plane is replaced, because nobody could tell later what has changed', async () => {
  const plane = { kind: 'KubeadmControlPlane', namespace: 'default', name: 'plane' } as const;
  const readOthers = vi.fn<Clusters['readOthers']>(async () => [
    { kind: 'gone', why: 'KubeadmControlPlane default/plane has no other Machine' },
  ]);
  const { ask, clusters } = await serve({
    readWorkload: async () => workload([drivenBy(plane)]),
    readOthers,
  });
  const response = await ask('CanUpdateMachine', canUpdateMachineRequest(before, after));
  expect(response).toMatchObject({
    status: 'Success',
    message: expect.stringContaining('KubeadmControlPlane default/plane has no other Machine'),
  });
  expect(response).not.toHaveProperty('bootstrapConfigPatch');
  expect(readOthers.mock.calls[0]?.slice(0, 2)).toEqual([plane, { namespace: 'default', name: 'plane-x' }]);
  expect(clusters.reportNewMachines).toHaveBeenCalledOnce();
});

test('what needs new machines has no patch, an Event on the owner, and asks no cluster', async () => {
  const { ask, clusters } = await serve();
  const response = await ask('CanUpdateMachineSet', canUpdateMachineSetRequest(before, mounted));
  const message =
    'new machines are needed: KubeadmConfig spec.files[/etc/live]: what the machine came with can not be taken away in place; KubeadmConfig spec.mounts: Shale can not change it on a machine';
  expect(response).toEqual({
    apiVersion: 'hooks.runtime.cluster.x-k8s.io/v1alpha1',
    kind: 'CanUpdateMachineSetResponse',
    status: 'Success',
    message,
    affectsAvailability: undefined,
  });
  expect(clusters.reportNewMachines).toHaveBeenCalledWith(workers, message, expect.anything());
  expect(clusters.readWorkload).not.toHaveBeenCalled();
});

test('what is not known now is a failure, which replaces nothing', async () => {
  const away = new NotKnownNow('the workload cluster default/one does not answer');
  const fail = () => Promise.reject(away);
  const { ask, clusters } = await serve({ readWorkload: fail, updateMachine: fail });
  for (const [hook, body] of [
    ['CanUpdateMachineSet', canUpdateMachineSetRequest(before, after)],
    ['CanUpdateMachine', canUpdateMachineRequest(before, after)],
    ['UpdateMachine', updateMachineRequest(after)],
  ] as const) {
    expect(await ask(hook, body)).toMatchObject({ status: 'Failure', message: away.message });
  }
  expect(clusters.reportNewMachines).not.toHaveBeenCalled();
});

test('an error of the program is a failure that says nothing of it, and is logged', async () => {
  const { ask, log } = await serve({
    readWorkload: () => Promise.reject(new Error('connect ECONNREFUSED 10.0.0.1:6443')),
  });
  const response = await ask('CanUpdateMachineSet', canUpdateMachineSetRequest(before, after));
  expect(response).toMatchObject({
    status: 'Failure',
    message: 'internal error; see the log of shale capi-extension',
  });
  expect(log()).toContain('ECONNREFUSED');
});

test('an update tells Cluster API when to ask again, until it is done', async () => {
  const updateMachine = vi
    .fn<Clusters['updateMachine']>()
    .mockResolvedValueOnce({ kind: 'inProgress', retryAfterSeconds: 10, message: 'applying' })
    .mockResolvedValueOnce({ kind: 'done', message: 'updated' });
  const { ask } = await serve({ updateMachine });
  const body = updateMachineRequest(after);
  expect(await ask('UpdateMachine', body)).toMatchObject({ status: 'Success', retryAfterSeconds: 10 });
  expect(await ask('UpdateMachine', body)).toMatchObject({ status: 'Success', retryAfterSeconds: 0 });
  expect(updateMachine.mock.calls[0]?.[0]).toMatchObject({
    cluster: { namespace: 'default', name: 'one' },
    machine: { namespace: 'default', name: 'workers-a-x' },
  });
});

test('nothing of a request is logged', async () => {
  const { ask, log } = await serve();
  const secret = 'canary-7f1a';
  const joinConfiguration = { discovery: { bootstrapToken: { token: secret } } };
  const objects = machineObjects({
    bootstrap: { joinConfiguration, files: [{ path: '/etc/live', content: secret }] },
  });
  await ask('UpdateMachine', updateMachineRequest(objects));
  await ask('CanUpdateMachineSet', canUpdateMachineSetRequest(before, objects));
  await ask('CanUpdateMachine', { desired: secret });
  expect(log()).not.toContain(secret);
});

test.each<[string, string | Buffer, string]>([
  ['no JSON', 'canary-{', 'the request is not JSON'],
  ['no object', '[]', 'UpdateMachineRequest: expected object'],
  ['more than 20 MiB', Buffer.alloc(20 * 1024 * 1024 + 1, ' '), 'the request has more than 20971520 bytes'],
])('a request of %s is a failure that says so', async (_what, body, message) => {
  const { call } = await serve();
  const { status, text } = await call(pathOf('UpdateMachine'), body);
  expect({ status, ...JSON.parse(text) }).toMatchObject({ status: 'Failure', message });
});

test('only hooks are served, and only to POST', async () => {
  const { call } = await serve();
  expect((await call('/healthz', '{}')).status).toBe(404);
  expect((await call(pathOf('UpdateMachine').replace(/-/g, '_'), '{}')).status).toBe(404);
  expect((await call(DISCOVERY_PATH, '', 'GET')).status).toBe(405);
});

test('a caller that goes away stops what is done for it', async () => {
  let aborted: AbortSignal | undefined;
  const { server } = await serve({
    readWorkload: (_cluster, signal) => {
      aborted = signal;
      return new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(new NotKnownNow('gone'))),
      );
    },
  });
  const body = JSON.stringify(canUpdateMachineSetRequest(before, after));
  const socket = connect({ host: '127.0.0.1', port: server.port, ca: authority.caPem });
  await once(socket, 'secureConnect');
  socket.write(
    `POST ${pathOf('CanUpdateMachineSet')} HTTP/1.1\r\nhost: a\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  await vi.waitFor(() => expect(aborted).toBeDefined());
  socket.destroy();
  await vi.waitFor(() => expect(aborted?.aborted).toBe(true));
});

test('everything that is done for one call has the same deadline', async () => {
  const { ask, clusters } = await serve({ readWorkload: vi.fn(async () => workload([])) });
  await ask('CanUpdateMachineSet', canUpdateMachineSetRequest(before, after));
  const reported = vi.mocked(clusters.reportNewMachines).mock.calls[0]?.[2];
  expect(reported).toBeDefined();
  expect(vi.mocked(clusters.readWorkload).mock.calls[0]?.[1]).toBe(reported);
});

test('a new certificate is used for new connections', async () => {
  const { server } = await serve();
  const fingerprint = async () => {
    const socket = connect({ host: '127.0.0.1', port: server.port, ca: authority.caPem });
    await once(socket, 'secureConnect');
    const { fingerprint256 } = socket.getPeerCertificate();
    socket.destroy();
    return fingerprint256;
  };
  const first = await fingerprint();
  server.setCertificate(issued());
  expect(await fingerprint()).not.toBe(first);
});
