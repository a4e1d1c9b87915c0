import { expect, test } from 'vitest';
import { formatDispute, formatDisputes } from './pool-disputes.ts';

const ADVICE = 'or the nodeSelector of a pool, so that only one of them does';

test('of one node: why it is in no pool, and what to do', () => {
  expect(formatDispute({ node: 'a', pools: ['infra', 'storage'] })).toBe(
    `it is in no pool, because custom pools infra and storage both select it; change its labels, ${ADVICE}`,
  );
});

test('nodes of the same pools are one sentence, and of many some are named', () => {
  const many = [...Array(12).keys()].map((index) => ({
    node: `node-${String(index).padStart(2, '0')}`,
    pools: ['gpu', 'infra', 'storage'],
  }));
  expect(formatDisputes([{ node: 'b', pools: ['gpu', 'infra'] }, ...many.toReversed()])).toEqual([
    `Node b is in no pool, because custom pools gpu and infra both select it; change its labels, ${ADVICE}`,
    `Nodes node-00, node-01, node-02, node-03, node-04, node-05, node-06, node-07, node-08, node-09 and 2 more are in no pool, because custom pools gpu, infra and storage all select them; change their labels, ${ADVICE}`,
  ]);
});
