import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import type { RepairRequest } from '../../api/annotation-requests.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import { nodePaths, OPERATOR_LEASE_HOLDER } from '../../api/names.ts';
import {
  imageOf,
  observation,
  quietChannel,
  standard,
  stepUnderTest,
} from '../../test/fixtures/step-context.ts';
import { UndoError } from '../content/write/write-content.ts';
import type { Current } from '../records/current.ts';
import { readLastRepair } from '../records/last-update.ts';
import { repair } from './repair.ts';

const request = { id: 'r-1', by: 'ann', at: '2026-01-01T00:00:00Z' };
const rendered = standard('rendered-1', [{ path: '/etc/app.conf', content: 'right' }]);

async function node(current: Current | undefined, leaseHolder?: string) {
  const object: MachineConfigNode = {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfigNode',
    metadata: { name: 'worker-1' },
    spec: {
      node: { name: 'worker-1' },
      pool: { name: 'worker' },
      configVersion: { desired: 'rendered-1' },
    },
  };
  const channel = { ...quietChannel, object };
  const under = await stepUnderTest({ leaseHolder, context: { channel } });
  const at = (name: string) => path.join(under.root, name);
  await mkdir(path.dirname(at(nodePaths.imageConfig)), { recursive: true });
  await writeFile(at(nodePaths.imageConfig), JSON.stringify(rendered.rendered));
  await writeFile(at('etc/app.conf'), 'right');
  const run = (asked: RepairRequest = request) => repair(under.context, asked, observation({ current }));
  return { ...under, at, run };
}

describe.each<[string, Current]>([
  ['standard', rendered],
  ['layered', { version: 1, mode: 'Layered', config: 'rendered-1', image: imageOf('1') }],
])('a repair in %s mode', (_mode, current) => {
  test('puts back what differs, names it, and is recorded', async () => {
    const { at, root, events, run } = await node(current);
    await writeFile(at('etc/app.conf'), 'wrong');
    await writeFile(at('etc/admin.conf'), 'mine');
    expect(await run()).toEqual({ kind: 'again' });
    expect(await readFile(at('etc/app.conf'), 'utf8')).toBe('right');
    expect(await readFile(at('etc/admin.conf'), 'utf8')).toBe('mine');
    expect(events).toEqual([
      'Restored from rendered-1, because ann requested a repair: /etc/app.conf. Services that read these files were not restarted',
    ]);
    expect(await readLastRepair(root)).toMatchObject({ id: 'r-1', by: 'ann', result: 'Succeeded' });
  });

  test('of what does not differ changes nothing', async () => {
    const { events, run } = await node(current);
    await run();
    expect(events).toEqual(['ann requested a repair, and nothing differs from rendered-1']);
  });
});

test('a node that Shale has not configured has nothing to put back', async () => {
  const { events, root, run } = await node(undefined);
  await run();
  expect(events).toEqual(['ann requested a repair, and no config is on the node yet']);
  expect(await readLastRepair(root)).toMatchObject({ result: 'Succeeded' });
});

test('a repair that fails is reported and keeps nothing else waiting', async () => {
  const broken = { ...rendered.rendered, spec: { config: { ignition: { version: '99.0.0' } } } };
  const { events, root, run } = await node({ ...rendered, rendered: broken });
  expect(await run()).toEqual({ kind: 'again' });
  expect(events).toHaveLength(1);
  const record = await readLastRepair(root);
  expect(record).toMatchObject({ id: 'r-1', result: 'Failed', message: events[0] });
});

describe('a repair of a node whose lease is held', () => {
  const changed = async (leaseHolder: string) => {
    const under = await node(rendered, leaseHolder);
    await writeFile(under.at('etc/app.conf'), 'wrong');
    return { ...under, content: () => readFile(under.at('etc/app.conf'), 'utf8') };
  };

  test('by somebody else changes nothing, says who holds it, and is not tried again', async () => {
    const { content, events, reasons, root, run } = await changed('ops');
    expect(await run()).toEqual({ kind: 'again' });
    expect(await content()).toBe('wrong');
    expect(reasons).toEqual(['RepairFailed']);
    expect(events[0]).toBe(
      'Nothing was overwritten: ops holds the node lease; run shale repair again once it is released, or with --force',
    );
    expect(await readLastRepair(root)).toMatchObject({ id: 'r-1', result: 'Failed', message: events[0] });
  });

  test('by the operator is carried out', async () => {
    const { content, run } = await changed(OPERATOR_LEASE_HOLDER);
    await run();
    expect(await content()).toBe('right');
  });

  test('by whom the request names is carried out, and the event names them', async () => {
    const { content, events, run } = await changed('ops');
    await run({ ...request, leaseHolder: 'ops' });
    expect(await content()).toBe('right');
    expect(events[0]).toContain('because ann requested a repair under the lease of ops: /etc/app.conf');
  });

  test('by another than the request names changes nothing', async () => {
    const { content, events, run } = await changed('medik8s');
    await run({ ...request, leaseHolder: 'ops' });
    expect(await content()).toBe('wrong');
    expect(events[0]).toContain('medik8s holds the node lease');
  });
});

test('a repair that the end of the daemon interrupts has not ended', async () => {
  const { at, context, events, root } = await node(rendered);
  await writeFile(at('etc/app.conf'), 'wrong');
  const ending = new AbortController();
  const relabel = async () => {
    ending.abort(new Error('ending'));
    throw new Error('interrupted');
  };
  const interrupted = { ...context, signal: ending.signal, ports: { ...context.ports, relabel } };
  await expect(repair(interrupted, request, observation({ current: rendered }))).rejects.toThrow('ending');
  expect(await readLastRepair(root)).toBeUndefined();
  expect(events).toEqual([]);
});

test('a repair that leaves the disk between two states has not ended', async () => {
  const current: Current = { version: 1, mode: 'Layered', config: 'rendered-1', image: imageOf('1') };
  const { at, context, events, root } = await node(current);
  await writeFile(at('etc/app.conf'), 'wrong');
  const undone = new UndoError([new Error('EIO')], 'could not be undone');
  const broken = { ...context, ports: { ...context.ports, wrongLabels: () => Promise.reject(undone) } };
  await expect(repair(broken, request, observation({ current }))).rejects.toBe(undone);
  expect(await readLastRepair(root)).toBeUndefined();
  expect(events).toEqual([]);
});
