import { expect, test } from 'vitest';
import { formatRebootRequest } from '../../api/annotation-requests.ts';
import type {
  MachineConfigNode,
  MachineConfigNodeStatus,
  UpdatePlan,
} from '../../api/machine-config-node.ts';
import { annotations } from '../../api/names.ts';
import { condition, machineConfigNode, node, observed } from '../../test/fixtures/observed-cluster.ts';
import { rebootArrival } from './reboot-arrival.ts';

const NOW = Date.parse('2026-11-20T10:30:00Z');
const TARGET = 'rendered-worker-1';
const plan: UpdatePlan = {
  config: TARGET,
  staged: true,
  actions: [{ type: 'Reboot' }],
  causes: [],
  source: 'ann',
};
const running = (bootID: string): MachineConfigNodeStatus => ({
  bootID,
  configVersion: { current: TARGET, desired: TARGET },
  conditions: [condition('Updated', 'True')],
});
const waiting: MachineConfigNodeStatus = {
  ...running('boot-1'),
  plan,
  conditions: [
    condition('Updated', 'False'),
    condition('UpdatePrepared', 'True', 'Waiting for permission to reboot'),
  ],
};

function asked(status: MachineConfigNodeStatus, isAsked = true): MachineConfigNode {
  const object = machineConfigNode('a', status);
  const text = formatRebootRequest({ bootID: 'boot-1', by: 'ann', reason: '', at: '' });
  return isAsked
    ? { ...object, metadata: { ...object.metadata, annotations: { [annotations.reboot]: text } } }
    : object;
}

test.each<[string, MachineConfigNode, object]>([
  [
    'its daemon has not seen it',
    asked(running('boot-1')),
    { kind: 'underway', progress: 'a: waiting for its daemon' },
  ],
  [
    'it waits for its grant',
    asked(waiting),
    { kind: 'underway', progress: expect.stringContaining('Waiting for permission to reboot') },
  ],
  ['it has booted', asked({ ...waiting, bootID: 'boot-2' }), { kind: 'underway' }],
  ['it has booted and is healthy', asked(running('boot-2')), { kind: 'arrived' }],
  [
    'the request is gone',
    asked(running('boot-1'), false),
    { kind: 'stopped', why: expect.stringContaining('was removed') },
  ],
  [
    'it is not healthy afterwards',
    asked({ ...waiting, bootID: 'boot-2', conditions: [condition('NodeDegraded', 'True', 'no route')] }),
    { kind: 'stopped', why: 'node a failed: no route' },
  ],
])('a requested reboot where %s', (_, object, expected) => {
  const cluster = observed({ machineConfigNodes: [object], nodes: [node('a')] });
  expect(rebootArrival({ name: 'a', bootID: 'boot-1' }, cluster, NOW)).toMatchObject(expected);
});
