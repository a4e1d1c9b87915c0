import { expect, test } from 'vitest';
import { changeOf } from '../api/change-id.ts';
import type { MachineConfig } from '../api/machine-config.ts';
import { annotations } from '../api/names.ts';
import { present } from '../api/present.ts';
import { aBuild, aMachineConfigNode, aNode, aPool, aSuccess } from '../test/fixtures/objects.ts';
import { condition, observed, pool } from '../test/fixtures/observed-cluster.ts';
import { ExplainOutput, explainNode, formatExplanation } from './explain-command.ts';

const update = {
  config: 'rendered-worker-2',
  change: changeOf('rendered-worker-2'),
  causes: [],
  actions: 'Reboot',
  source: 'the policies in force',
};
const last = {
  ...update,
  startedAt: '2026-11-20T10:00:00Z',
  finishedAt: '2026-11-20T10:05:00Z',
  result: 'Succeeded' as const,
  rebooted: true,
};
const node = { node: 'a', pool: 'worker' };

test.each([
  ['a node that has reported nothing', node, 'node a of pool worker has not reported what it runs\n'],
  [
    'a node that runs a config',
    { ...node, config: 'rendered-worker-1' },
    'node a of pool worker runs rendered-worker-1\n',
  ],
  ['standard mode', { ...node, mode: 'Standard' as const }, '\n  mode: Standard\n'],
  [
    'layered mode',
    { ...node, mode: 'Layered' as const, image: 'r.io/os@sha256:1' },
    '\n  mode: Layered, r.io/os@sha256:1\n',
  ],
  [
    'a node that Cluster API has handed over',
    {
      ...node,
      handedOver: {
        owner: 'MachineDeployment default/workers',
        machine: 'default/m-1',
        since: last.startedAt,
      },
    },
    '\n  handed over: by Cluster API (MachineDeployment default/workers), Machine default/m-1, since 2026-11-20T10:00:00Z\n',
  ],
  [
    'a change that is being tried',
    { ...node, config: 'rendered-worker-1', tried: 'MachineConfig 99-a is undone at 10:00' },
    'runs rendered-worker-1\n  tried: MachineConfig 99-a is undone at 10:00; shale try cancel undoes it now\n\nlast',
  ],
  ['no update', node, '\nlast update: none recorded\n\nnext update: none'],
  [
    'a node on which nothing is to be done',
    { ...node, config: 'rendered-worker-1', state: 'updated' as const },
    'runs rendered-worker-1\n\nlast',
  ],
  [
    'a node that failed',
    { ...node, config: 'rendered-worker-1', state: 'degraded' as const, what: 'etcd is away' },
    'runs rendered-worker-1\n  state: degraded: etcd is away\n\nlast',
  ],
  [
    'a failure that is not tried again',
    { ...node, last, failed: { config: 'rendered-worker-2', advice: 'fix the node and run shale retry a' } },
    '\nnext update: to rendered-worker-2, which failed and is not tried again by itself: fix the node and run shale retry a',
  ],
  ['a reboot', { ...node, last }, '\n  result: Succeeded, with a reboot\n'],
  [
    'a soft reboot',
    { ...node, last: { ...last, softly: true as const } },
    '\n  result: Succeeded, with a soft reboot\n',
  ],
  ['no reboot', { ...node, last: { ...last, rebooted: false } }, '\n  result: Succeeded, without a reboot\n'],
  [
    'a failure',
    { ...node, last: { ...last, result: 'RolledBack' as const, message: 'kubelet is not Ready' } },
    '\n  result: RolledBack, with a reboot: kubelet is not Ready\n',
  ],
  [
    'a pending update',
    { ...node, next: { ...update, state: 'staging' } },
    '\nnext update: to rendered-worker-2\n',
  ],
  [
    'what a pending update waits for',
    { ...node, next: { ...update, state: 'staged', what: 'skipped: a NodeMaintenance is active' } },
    '\n  actions: Reboot (from the policies in force)\n  state: staged: skipped: a NodeMaintenance is active',
  ],
])('%s', (_, explained, text) => {
  expect(formatExplanation(explained)).toContain(text);
});

test.each([
  [['10-a', '20-b'], 'changed', '  10-a, 20-b -> changed /etc/a -> policy for /etc -> None'],
  [[], 'removed', '  no MachineConfig (removed) -> removed /etc/a -> policy for /etc -> None'],
] as const)('a cause names its MachineConfigs: %j', (machineConfigs, change, line) => {
  const causes = [{ machineConfigs, change, subject: '/etc/a', rule: 'policy for /etc', actions: 'None' }];
  const next = { ...update, causes, state: 'staged' };
  expect(formatExplanation({ ...node, next }).split('\n')).toContain(line);
});

test('a soft reboot fits the schema of -o json', () => {
  const explained = { ...node, last: { ...last, softly: true as const } };
  expect(ExplainOutput.parse(explained)).toEqual(explained);
});

test.each([
  ['True', 'MachineConfig 99-a is undone at 10:00 unless it is confirmed (shale try confirm)'],
  ['False', undefined],
] as const)('a change that is being tried in the pool of the node: %s', (status, tried) => {
  const message = 'MachineConfig 99-a is undone at 10:00 unless it is confirmed (shale try confirm)';
  const pools = [pool([condition('ChangeTried', status, message)])];
  const cluster = observed({ pools, machineConfigNodes: [aMachineConfigNode('a')] });
  const explained = explainNode('a', cluster, [], 0);
  expect(explained?.tried).toBe(tried);
  expect(ExplainOutput.parse(explained)).toEqual(explained);
});

test('a node that two custom pools claim: why it is in none, and what to do', () => {
  const labels = { 'node-role.kubernetes.io/infra': '', 'node-role.kubernetes.io/storage': '' };
  const claimed = observed({
    pools: [aPool('infra'), aPool('storage')],
    nodes: [aNode('a', { metadata: { name: 'a', labels } })],
    machineConfigNodes: [aMachineConfigNode('a', { pool: { name: 'infra' } })],
  });
  const explained = explainNode('a', claimed, [], 0);
  if (explained === undefined) throw new Error('there is such a node');
  expect(ExplainOutput.parse(explained)).toEqual(explained);
  expect(formatExplanation(explained)).toMatch(
    /\n {2}skipped: it is in no pool, because custom pools infra and storage both select it; change its labels, /,
  );
});

test('of a node that failed at its target, its state and what to do are explained', () => {
  const failed = aMachineConfigNode('a', undefined, {
    conditions: [condition('NodeDegraded', 'True', 'etcd is away')],
    lastUpdate: {
      config: 'rendered-worker-1',
      actions: [],
      causes: [],
      source: '',
      result: 'RolledBack',
      startedAt: '2026-11-20T10:00:00Z',
      finishedAt: '2026-11-20T10:05:00Z',
      bootIDBefore: '1',
      bootIDAfter: '2',
    },
  });
  const explained = explainNode('a', observed({ machineConfigNodes: [failed] }), [], 0);
  expect(ExplainOutput.parse(JSON.parse(JSON.stringify(explained)))).toMatchObject({
    state: 'degraded',
    what: 'etcd is away',
    failed: { config: 'rendered-worker-1', advice: expect.stringContaining('shale retry a') },
  });
});

test('what is different inside the next image is named, and what it is compared with', () => {
  const asked = { staged: true, causes: [], actions: [], source: 'the policies in force' };
  const build = aBuild('b', 'rendered-worker-2', { status: aSuccess('2') });
  const image = build.status?.digestedImagePushSpec ?? '';
  const previousImage = image.replace(/2{64}/, '1'.repeat(64));
  const contents = { summary: '41 packages (41 upgraded)', previousImage };
  const plan = { config: 'rendered-worker-2', image, ...asked };
  const configVersion = { current: 'rendered-worker-1', desired: 'rendered-worker-2' };
  const explained = explainNode(
    'a',
    observed({
      machineConfigNodes: [aMachineConfigNode('a', {}, { configVersion, plan })],
      builds: [{ ...build, status: { ...build.status, contents } as never }],
    }),
    [],
    0,
  );
  expect(ExplainOutput.parse(JSON.parse(JSON.stringify(explained))).next?.contents).toEqual(contents);
  expect(explained && formatExplanation(explained)).toContain(
    `\n  contents: 41 packages (41 upgraded), compared with ${previousImage}`,
  );
});

test('the stream of OS images is named of what a node runs and of what it gets', () => {
  const rendered = (name: string, stream?: string): MachineConfig => ({
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name, annotations: present({ [annotations.osImageStream]: stream }) },
    spec: {},
  });
  const configs = [rendered('rendered-worker-1', 'el9'), rendered('rendered-worker-2', 'el10')];
  const asked = { staged: true, causes: [], actions: [], source: 'the policies in force' };
  const plan = { config: 'rendered-worker-2', ...asked };
  const configVersion = { current: 'rendered-worker-1', desired: 'rendered-worker-2' };
  const cluster = observed({ machineConfigNodes: [aMachineConfigNode('a', {}, { configVersion, plan })] });
  const explained = explainNode('a', cluster, configs, 0);
  if (explained === undefined) throw new Error('not explained');
  expect(explained).toMatchObject({ osImageStream: 'el9', next: { osImageStream: 'el10' } });
  expect(ExplainOutput.safeParse(explained).error).toBeUndefined();
  const lines = formatExplanation(explained).split('\n');
  expect(lines[1]).toBe('  OS image stream: el9');
  expect(lines).toContain('  OS image stream: el10');
  const without = explainNode('a', cluster, [rendered('rendered-worker-1')], 0);
  expect(without === undefined ? '' : formatExplanation(without)).not.toContain('stream');
});
