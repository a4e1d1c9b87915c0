import { expect, test } from 'vitest';
import { type Finding, findings, formatReport, parseReport } from './finding.ts';

const { ok, failure } = findings('registries, from the builder');

test('a report is parsed as it was written, with failures first', () => {
  const results = [ok('pool a: read x'), failure('pool b: read y', 'fix it')];
  expect(parseReport(formatReport(results))).toEqual(results.toReversed());
  expect(parseReport(formatReport([]))).toEqual([]);
});

test('what does not fit into a termination message is counted', () => {
  const results: Finding[] = Array.from({ length: 100 }, (_, index) =>
    failure(`${index} ${'ü'.repeat(5000)}`, 'fix'),
  );
  const text = formatReport(results);
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(4096);
  const read = parseReport(text) ?? [];
  expect(read.length).toBeGreaterThan(1);
  expect(read.at(-1)?.what).toBe(`${100 - (read.length - 1)} more findings`);
});

test.each(['', 'Error: no', '{}', '[{"level":"fine"}]'])('%j is not a report', (text) => {
  expect(parseReport(text)).toBeUndefined();
});
