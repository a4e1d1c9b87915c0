import { expect, test } from 'vitest';
import { type Finding, findings, formatReport, parseReport } from './finding.ts';

const { ok, failure } = findings('registries, from the builder');

test('a report is read as it was written, what is wrong first', () => {
  const found = [ok('pool a: read x'), failure('pool b: read y', 'mend it')];
  expect(parseReport(formatReport(found))).toEqual(found.toReversed());
  expect(parseReport(formatReport([]))).toEqual([]);
});

test('what does not fit into a termination message is counted', () => {
  const found: Finding[] = Array.from({ length: 100 }, (_, index) =>
    failure(`${index} ${'ü'.repeat(5000)}`, 'mend'),
  );
  const text = formatReport(found);
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(4096);
  const read = parseReport(text) ?? [];
  expect(read.length).toBeGreaterThan(1);
  expect(read.at(-1)?.what).toBe(`${100 - (read.length - 1)} more findings`);
});

test.each(['', 'Error: no', '{}', '[{"level":"fine"}]'])('%j is no report', (text) => {
  expect(parseReport(text)).toBeUndefined();
});
