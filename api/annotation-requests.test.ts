import { expect, test } from 'vitest';
import {
  formatClusterApiUpdate,
  formatRepairRequest,
  formatRetryRequest,
  isRetryOf,
  parseClusterApiUpdate,
  parseRepair,
  parseRetry,
} from './annotation-requests.ts';

test.each(['ann', '', 'x'.repeat(300)])('a request is read as it was written, by %s', (by) => {
  const request = { id: 'r', by, at: '2026-01-01T00:00:00Z' };
  expect(parseRepair(formatRepairRequest(request))).toEqual({ ...request, by: by.slice(0, 253) });
});

test('a request needs an id alone', () => {
  expect(parseRepair('{"id":"r"}')).toEqual({ id: 'r', by: '', at: '' });
  expect(() => parseRepair('{}')).toThrow('id');
});

test.each(['ann', '', 'x'.repeat(300)])('a request to retry is read as it was written, by %s', (by) => {
  const image = `r.io/os/worker@sha256:${'a'.repeat(64)}`;
  const request = { config: 'rendered-1', image, failedAt: '2026-01-01T00:00:00.000Z', by, at: '' };
  const read = parseRetry(formatRetryRequest(request));
  expect(read).toEqual({ ...request, by: by.slice(0, 253) });
  expect(isRetryOf(read, { config: 'rendered-1', image, finishedAt: request.failedAt })).toBe(true);
  expect(isRetryOf(read, { config: 'rendered-1', finishedAt: request.failedAt })).toBe(false);
});

test('an update that Cluster API decides is read as it was written', () => {
  const update = {
    owner: { kind: 'MachineDeployment', namespace: 'default', name: 'workers' },
    machine: { namespace: 'default', name: 'workers-7xq2' },
    at: '2026-11-01T12:00:00Z',
  } as const;
  const text = formatClusterApiUpdate(update);
  expect(JSON.parse(text)).toEqual({
    owner: 'MachineDeployment default/workers',
    machine: 'default/workers-7xq2',
    at: '2026-11-01T12:00:00Z',
  });
  expect(parseClusterApiUpdate(text)).toEqual(update);
});

test.each([
  ['true', 'object'],
  ['{', 'JSON'],
  ['{"owner":"MachineDeployment a/b","machine":"a/c"}', 'at'],
  ['{"owner":"MachineDeployment a/b","machine":"a/c","at":"soon"}', 'at'],
  ['{"owner":"MachineSet a/b","machine":"a/c","at":"2026-11-01T12:00:00Z"}', 'expected an owner'],
  ['{"owner":"MachineDeployment a/b","machine":"c","at":"2026-11-01T12:00:00Z"}', 'expected a Machine'],
])('%s is no update that Cluster API decides', (text, why) => {
  expect(() => parseClusterApiUpdate(text)).toThrow(why);
});
