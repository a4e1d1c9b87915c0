/** The kubelets of a sandbox's machines: Nodes registered, machines switched off and on. */
import { access, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type ApiServer, startApiServer } from '@shale/apiserver/start.ts';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { type Node, Nodes } from '../../api/kubernetes.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { tokenConnection } from '../../cluster/connection.ts';
import { createApiClient } from '../../cluster/http-api-client.ts';
import { MACHINES, nodeObjects } from './cluster-objects.ts';
import { createMachines, type MachineState, machinesThatDidNotBoot, reportNode } from './machines.ts';
import { directoryNodes } from './node/directory-nodes.ts';
import type { BootedMachine } from './node-kind.ts';

const [{ name }] = MACHINES;
let server: ApiServer;
let client: ApiClient;

beforeAll(async () => {
  server = await startApiServer();
  client = createApiClient(tokenConnection(server.url, server.adminToken, server.caPem));
});
afterAll(() => server.stop());

const report = (state: MachineState) => reportNode(client, name, state);

const isReady = (status: 'True' | 'False') =>
  expect.arrayContaining([expect.objectContaining({ type: 'Ready', status })]);

test('a kubelet that comes up registers its Node where it was deleted, and one that goes down does not', async () => {
  await report({ type: 'rebooting' });
  expect(await client.find(Nodes, name)).toBeUndefined();
  await report({ type: 'up', bootID: 'boot-1' });
  const first = await client.get(Nodes, name);
  expect(first.metadata.labels).toEqual(
    nodeObjects().find(({ metadata }) => metadata.name === name)?.metadata.labels,
  );
  expect(first.status).toMatchObject({ nodeInfo: { bootID: 'boot-1' }, conditions: isReady('True') });
  await report({ type: 'rebooting' });
  const down = await client.get(Nodes, name);
  expect(down.metadata.uid).toBe(first.metadata.uid);
  expect(down.status).toMatchObject({ nodeInfo: { bootID: 'boot-1' }, conditions: isReady('False') });
  await client.delete(Nodes, name);
  await report({ type: 'up', bootID: 'boot-2' });
  const again = await client.get(Nodes, name);
  expect(again.metadata.uid).not.toBe(first.metadata.uid);
  expect(again.status).toMatchObject({ nodeInfo: { bootID: 'boot-2' } });
});

test('a machine that does not come up is reported on its Node and switched on again, and others stay up', async () => {
  const [broken, sound] = MACHINES.map((machine): string => machine.name);
  if (broken === undefined || sound === undefined) throw new Error('the sandbox has two machines or more');
  const bothUp = Promise.withResolvers<void>();
  let meanwhile: Node | undefined;
  let boots = 0;
  let reported = 0;
  const boot = async (directory: string): Promise<BootedMachine> => {
    if (directory === broken && boots++ === 0) throw new Error('no deployment to boot');
    if (directory === broken) meanwhile = await client.get(Nodes, directory);
    const down = new Promise<never>(() => undefined);
    return { bootID: `boot of ${directory}`, down, kill: async () => undefined };
  };
  await report({ type: 'up' });
  const stop = new AbortController();
  const machines = createMachines({
    client,
    kind: { ...directoryNodes(), boot },
    machines: [broken, sound].map((each) => ({ name: each, directory: each })),
    killProcesses: async () => undefined,
    // Of each once its Node reports it; whether it is up is known before.
    onChange: () => {
      reported += 1;
      if (reported === 2) bothUp.resolve();
    },
    kubeletVersion: 'v1.34.7',
    retryMs: 1,
    log: pino({ enabled: false }),
    signal: stop.signal,
  });
  const running = machines.run();
  await Promise.race([bothUp.promise, running]);
  expect(meanwhile?.status?.conditions).toEqual(isReady('False'));
  expect(machinesThatDidNotBoot(meanwhile === undefined ? [] : [meanwhile])).toEqual([
    `${broken}: the sandbox machine did not come up: no deployment to boot`,
  ]);
  const node = await client.get(Nodes, broken);
  const { status } = node;
  expect(machinesThatDidNotBoot([node])).toEqual([]);
  expect(status).toMatchObject({ conditions: isReady('True'), nodeInfo: { kubeletVersion: 'v1.34.7' } });
  stop.abort();
  await running;
});

test('a machine that is powered off stays off until its power button is pressed', async () => {
  const directory = await mkdtemp(path.join(tmpdir(), 'shale-machine-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  let boots = 0;
  const boot = async (): Promise<BootedMachine> => {
    boots += 1;
    const down = boots === 1 ? Promise.resolve('off' as const) : new Promise<never>(() => undefined);
    return { bootID: `boot-${boots}`, down, kill: async () => undefined };
  };
  const changed = [
    Promise.withResolvers<void>(),
    Promise.withResolvers<void>(),
    Promise.withResolvers<void>(),
  ];
  let changes = 0;
  const stop = new AbortController();
  const machines = createMachines({
    client,
    kind: { ...directoryNodes(), boot },
    machines: [{ name, directory }],
    killProcesses: async () => undefined,
    onChange: () => changed[changes++]?.resolve(),
    kubeletVersion: 'v1',
    log: pino({ level: 'silent' }),
    signal: stop.signal,
  });
  const running = machines.run();
  await changed[1]?.promise;
  expect([machines.isUp(name), boots]).toEqual([false, 1]);
  await writeFile(path.join(directory, 'power-on'), '');
  await changed[2]?.promise;
  expect([machines.isUp(name), boots]).toEqual([true, 2]);
  await expect(access(path.join(directory, 'power-on'))).rejects.toThrow('ENOENT');
  stop.abort();
  await running;
});
