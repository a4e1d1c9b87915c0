import pino from 'pino';
import { expect, test } from 'vitest';
import { changeOf } from '../api/change-id.ts';
import { aboutChange, type EventRecorder } from './events.ts';

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
