import { expect, test } from 'vitest';
import { formatRepairRequest, parseRepair } from './annotation-requests.ts';

test.each(['ann', '', 'x'.repeat(300)])('a request is read as it was written, by %s', (by) => {
  const request = { id: 'r', by, at: '2026-01-01T00:00:00Z' };
  expect(parseRepair(formatRepairRequest(request))).toEqual({ ...request, by: by.slice(0, 253) });
});

test('a request needs an id alone', () => {
  expect(parseRepair('{"id":"r"}')).toEqual({ id: 'r', by: '', at: '' });
  expect(() => parseRepair('{}')).toThrow('id');
});
