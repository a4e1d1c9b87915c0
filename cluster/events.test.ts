import pino from 'pino';
import { expect, test, vi } from 'vitest';
import { changeOf } from '../api/change-id.ts';
import { Events } from '../api/kubernetes.ts';
import { MemoryCluster } from '../test/fixtures/fleet/memory-cluster.ts';
import { aboutChange, createEventRecorder, type EventRecorder } from './events.ts';

const CONFIG = 'rendered-worker-0123456789abcdef0123456789abcdef';
const pool = { apiVersion: 'v1', kind: 'MachineConfigPool', metadata: { name: 'worker' } };

/** Keeps what is reported. */
function listening() {
  const lines: string[] = [];
  const told: unknown[][] = [];
  const log = pino({ base: null, timestamp: false }, { write: (line: string) => void lines.push(line) });
  const events: EventRecorder = {
    normal: (...args) => void told.push(['normal', ...args]),
    warning: (...args) => void told.push(['warning', ...args]),
  };
  return { reporters: { log, events }, lines, told };
}

test('every line and every event of a change has its id', () => {
  const { reporters, lines, told } = listening();
  const { log, events } = aboutChange(reporters, CONFIG);
  log.info({ node: 'a' }, 'granted');
  events.warning(pool, 'RolloutStopped', 'two nodes failed');
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { node: 'a', change: '0123456789abcdef0123456789abcdef', msg: 'granted' },
  ]);
  expect(told).toEqual([['warning', pool, 'RolloutStopped', 'two nodes failed', changeOf(CONFIG)]]);
});

test('a report that belongs to no change is passed on unchanged', () => {
  const { reporters, lines } = listening();
  aboutChange(reporters, undefined).log.info('no build yet');
  aboutChange(reporters, '').log.info('no build yet');
  expect(lines.join('')).not.toContain('change');
});

test('an event is one line: kubectl shows events in a table', async () => {
  const cluster = new MemoryCluster();
  const recorder = createEventRecorder(cluster.client(), 'shale-daemon', pino({ enabled: false }));
  recorder.warning(pool, 'RolledBack', 'etcd is away\n2 of 3 are healthy\n');
  await vi.waitFor(() => expect(cluster.list(Events)).toHaveLength(1));
  expect(cluster.list(Events)[0]?.message).toBe('etcd is away; 2 of 3 are healthy');
});

test.each([
  ['a short one', 'worker', 'worker'],
  ['the longest', 'w'.repeat(253), 'w'.repeat(236)],
  ['one that is cut before a dot', `${'w'.repeat(235)}.${'x'.repeat(17)}`, 'w'.repeat(235)],
])(
  'an event has a name that the API server takes, whatever the name of its object: %s',
  async (_what, name, beginning) => {
    const cluster = new MemoryCluster();
    const recorder = createEventRecorder(cluster.client(), 'shale-operator', pino({ enabled: false }));
    recorder.normal({ ...pool, metadata: { name } }, 'Cordon', 'why');
    await vi.waitFor(() => expect(cluster.list(Events)).toHaveLength(1));
    const [event] = cluster.list(Events);
    expect(event?.metadata.name).toMatch(new RegExp(`^${beginning}\\.[0-9a-f]{16}$`));
    expect(event?.involvedObject.name).toBe(name);
  },
);
