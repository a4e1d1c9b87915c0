import { expect, test } from 'vitest';
import {
  formatRepairRequest,
  formatRetryRequest,
  isRetryOf,
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
