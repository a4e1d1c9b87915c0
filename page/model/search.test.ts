import { expect, test } from 'vitest';
import { search } from './search.ts';
import { EMPTY_VIEW, type NodeRow, type PageView } from './view.ts';

const node = (pool: string, more: Partial<NodeRow> = {}): NodeRow => ({
  pool,
  state: 'staged',
  config: { desired: 'rendered-1' },
  ready: true,
  cordoned: false,
  ...more,
});
const view: PageView = {
  ...EMPTY_VIEW,
  pools: {
    worker: {
      state: 'NodesUpdating',
      what: '1 of 3 nodes run it',
      paused: false,
      maxUnavailable: '1',
      config: 'rendered-worker-9f8e',
      source: { revision: '7f3c2d9' },
      holds: [{ kind: 'rollback', by: 'carol', reason: 'too slow' }],
      nodes: { total: 3, updated: 1, unavailable: 0, degraded: 0 },
    },
  },
  nodes: {
    'worker-2': node('worker', { plan: 'p' }),
    'worker-10': node('worker', {
      state: 'draining',
      blockedBy: [{ pod: 'shop/web-1', reason: 'PodDisruptionBudget web (allows 0 disruptions)' }],
    }),
    'infra-1': node('infra', { holds: [{ kind: 'maintenance', by: 'ops', reason: 'new disk' }] }),
  },
  plans: {
    p: {
      actions: [],
      causes: [{ subject: '/etc/chrony.conf', change: 'changed', rule: '', actions: [] }],
      source: '',
    },
  },
  builds: {
    'worker-next': {
      pool: 'worker',
      config: 'rendered-worker-00c0',
      state: 'Building',
      created: 0,
      transitions: [],
    },
  },
  logs: { 'worker-next': ['STEP 1/2: FROM x', 'STEP 2/2: RUN dnf -y install tcpdump'] },
  policies: {
    'file /etc/chrony.conf': {
      kind: 'file',
      subject: '/etc/chrony.conf',
      actions: 'Restart',
      source: 'admin',
    },
  },
  leases: {
    'infra-1': { node: 'infra-1', holder: 'node-healthcheck', ours: false, reason: 'not Ready' },
    'worker-2': { node: 'worker-2', holder: 'shale-operator', ours: true },
  },
};
const find = (text: string, most = 20) => search(view, text, most);
const names = (text: string) => find(text).found.map(({ kind, name }) => `${kind} ${name}`);

test.each([
  ['', []],
  ['   ', []],
  ['nothing like it', []],
  ['worker', ['pool worker', 'node worker-2', 'node worker-10', 'build worker-next']],
  ['WORKER-1', ['node worker-10']],
  ['worker draining', ['node worker-10']],
  ['chrony', ['policy file /etc/chrony.conf', 'pool worker']],
  ['web-1', ['node worker-10']],
  ['PodDisruptionBudget', ['node worker-10']],
  ['7f3c2d9', ['pool worker']],
  ['carol', ['pool worker']],
  ['disk', ['node infra-1']],
  ['tcpdump', ['build worker-next']],
  ['healthcheck', ['lease infra-1']],
  ['shale-operator', []],
])('%j finds %j', (text, found) => {
  expect(names(text).toSorted()).toEqual([...found].toSorted());
});

test('names come before what else is shown, in natural order', () => {
  expect(names('worker')).toEqual(['pool worker', 'node worker-2', 'node worker-10', 'build worker-next']);
  expect(names('chrony')[0]).toBe('policy file /etc/chrony.conf');
});

test('what matched beside the name is shown', () => {
  expect(find('tcpdump').found).toEqual([
    { kind: 'build', name: 'worker-next', line: 'STEP 2/2: RUN dnf -y install tcpdump' },
  ]);
  expect(find('worker-10').found).toEqual([{ kind: 'node', name: 'worker-10' }]);
});

test('all are counted, and only so many returned', () => {
  expect(find('worker', 2)).toMatchObject({ total: 4, found: [{ name: 'worker' }, { name: 'worker-2' }] });
});
