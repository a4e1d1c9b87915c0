import { expect, test } from 'vitest';
import type { RepairRequest, RetryRequest } from '../api/annotation-requests.ts';
import type { UpdateRecord } from '../api/machine-config-node.ts';
import { deployment, imageOf, observation, standard, stepUnderTest } from '../test/fixtures/step-context.ts';
import { observe } from './observe.ts';
import type { NodeDeployment } from './os/backend.ts';
import { writeCurrent } from './records/current.ts';
import { writeLastRepair, writeLastUpdate } from './records/last-update.ts';

const { spec } = observation();
const booted = deployment('/ostree/deploy/os/1', { image: imageOf('1'), kernelArguments: ['rw', 'a=1'] });

const OSTREE = 'ostree=/ostree/boot.1/os/0';

async function node(commandLine?: string, more: Partial<NodeDeployment> = {}) {
  const { context, root } = await stepUnderTest({
    host: { bootID: async () => 'boot-2', kernelCommandLine: async () => commandLine },
    backend: {
      status: async () => ({ booted: { ...booted, ...more } }),
      tool: async () => ({ name: 'bootc', installsPackages: false }),
    },
  });
  const { ports, journal, memory, signal } = context;
  const look = (repair?: RepairRequest, generation?: number, retry?: RetryRequest) =>
    observe(
      ports,
      journal,
      { spec, generation, repair, retry, reboot: undefined, powerOff: undefined },
      memory,
      signal,
    );
  return { root, look };
}

const record = (more: Partial<UpdateRecord>): UpdateRecord => ({
  config: 'rendered-1',
  actions: [],
  causes: [],
  source: 'test',
  startedAt: '2026-01-01T00:00:00.000Z',
  finishedAt: '2026-01-01T00:01:00.000Z',
  bootIDBefore: 'boot-1',
  bootIDAfter: 'boot-2',
  result: 'Failed',
  ...more,
});

test('a node that Shale has never configured has no records', async () => {
  const { look } = await node(`${OSTREE} rw a=1\n`);
  expect(await look(undefined, 3)).toEqual({
    ...observation(),
    generation: 3,
    bootedImage: imageOf('1'),
    bootedDeployment: '1',
    bootID: 'boot-2',
    osBackend: { name: 'bootc', installsPackages: false },
    kernelArguments: { entry: ['rw', 'a=1'], running: [OSTREE, 'rw', 'a=1'] },
  });
});

test('what an object without a generation asks has none', async () => {
  expect((await (await node()).look()).generation).toBeUndefined();
});

test('kernel arguments are told by their entry, the boot, and what Shale has added', async () => {
  const notes = { addedKernelArguments: ['a=1'], unreadableArgumentNotes: 'no JSON' };
  const { kernelArguments } = await (await node(`${OSTREE} rw`, notes)).look();
  expect(kernelArguments).toEqual({
    entry: ['rw', 'a=1'],
    running: [OSTREE, 'rw'],
    added: ['a=1'],
    unreadable: 'no JSON',
  });
});

test('the records of the node are read', async () => {
  const { root, look } = await node();
  const current = { ...standard('rendered-1'), baseImage: imageOf('0') };
  await writeCurrent(root, current);
  expect((await look()).current).toEqual(current);
});

test.each<[string, Partial<UpdateRecord>, object | undefined]>([
  ['that succeeded', { result: 'Succeeded', message: 'x' }, undefined],
  [
    'that failed without more',
    {},
    { config: 'rendered-1', why: 'the last update failed', reason: 'UpdateFailed' },
  ],
  [
    'that was rolled back',
    { result: 'RolledBack', message: 'kubelet', image: imageOf('2') },
    { config: 'rendered-1', image: imageOf('2'), why: 'kubelet', reason: 'HealthCheckFailed' },
  ],
  [
    'that says why itself',
    { result: 'RolledBack', reason: 'ConfigDrift', message: 'm' },
    { config: 'rendered-1', why: 'm', reason: 'ConfigDrift' },
  ],
])('of an update %s the next step knows', async (_what, more, failed) => {
  const { root, look } = await node();
  await writeLastUpdate(root, record(more));
  const seen = await look();
  expect(seen.failed).toEqual(failed);
  expect(seen.lastUpdate).toEqual(record(more));
});

test('a repair is asked for until its id is on record', async () => {
  const { root, look } = await node();
  const repair = { id: 'one', by: 'admin', at: '2026-01-01T00:00:00.000Z' };
  expect((await look(repair)).repair).toEqual(repair);
  await writeLastRepair(root, {
    id: 'one',
    by: 'admin',
    finishedAt: '2026-01-01T00:01:00.000Z',
    result: 'Succeeded',
  });
  expect((await look(repair)).repair).toBeUndefined();
  expect((await look({ ...repair, id: 'two' })).repair?.id).toBe('two');
});

test('a retry is requested of the failure that it names, and of no other', async () => {
  const { root, look } = await node();
  const image = imageOf('2');
  const failed = record({ image });
  const { finishedAt: failedAt } = failed;
  const retry = { config: 'rendered-1', image, failedAt, by: 'ann', at: '' };
  const seen = async (request: RetryRequest) => (await look(undefined, 1, request)).retry;
  expect(await seen(retry)).toBeUndefined();
  await writeLastUpdate(root, failed);
  expect(await seen(retry)).toEqual(retry);
  const { image: _image, ...standardMode } = retry;
  const others = [
    standardMode,
    { ...retry, config: 'rendered-2' },
    { ...retry, image: imageOf('3') },
    { ...retry, failedAt: '2026-01-01T00:01:00.001Z' },
  ];
  for (const other of others) expect(await seen(other)).toBeUndefined();
  // The next attempt has failed, too: nobody has requested another.
  await writeLastUpdate(root, { ...failed, finishedAt: '2026-01-01T01:00:00.000Z' });
  expect(await seen(retry)).toBeUndefined();
});
