import { expect, test } from 'vitest';
import { parseDigestedPullspec } from '../api/references.ts';
import { buildStatus } from './status.ts';

const image = parseDigestedPullspec(`registry.example.com/os/worker@sha256:${'a'.repeat(64)}`);
const now = '2026-01-01T00:00:00Z';

test('a status shows a bounded part of long lists: the first transitions, the last lines of a log', () => {
  const status = buildStatus(
    undefined,
    {
      kind: 'succeeded',
      image,
      baseImage: image,
      way: 'Engine',
      transitions: Array.from({ length: 300 }, (_, at) => ({ from: `config ${at}`, actions: 'None' })),
      summary: 'built',
      bytes: { sent: 0, mounted: 0 },
      logTail: Array.from({ length: 1000 }, (_, at) => `line ${at}`),
    },
    now,
  );
  expect(status.transitions).toHaveLength(50);
  expect(status.transitions?.[0]?.from).toBe('config 0');
  expect(status.logTail).toHaveLength(200);
  expect(status.logTail?.at(-1)).toBe('line 999');
});
