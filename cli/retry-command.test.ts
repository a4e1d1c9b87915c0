import { expect, test } from 'vitest';
import type { UpdateRecord } from '../api/machine-config-node.ts';
import type { Retriable } from '../view/retriable.ts';
import { formatRetry } from './retry-command.ts';

const update: UpdateRecord = {
  config: 'rendered-2',
  actions: [],
  causes: [],
  source: 'test',
  bootIDBefore: '1',
  bootIDAfter: '2',
  startedAt: '',
  finishedAt: '',
  result: 'Failed',
};

test.each<[Retriable, string]>([
  [
    { kind: 'failed', update: { ...update, message: 'no space' }, isRequested: false },
    'node a: requested a retry of the update to rendered-2, which failed: no space',
  ],
  [
    { kind: 'failed', update, isRequested: false },
    'node a: requested a retry of the update to rendered-2, which failed: no reason is reported',
  ],
  [
    { kind: 'failed', update, isRequested: true },
    'node a: a retry of the update to rendered-2 is requested already',
  ],
  [{ kind: 'none', why: 'it is well' }, 'node a: nothing to retry: it is well'],
])('%j is a sentence', (retriable, text) => {
  expect(formatRetry('a', retriable)).toBe(text);
});
