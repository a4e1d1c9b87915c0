import { describe, expect, test } from 'vitest';
import { crdOf } from '../../api/crd.ts';
import { crdDefinitions } from '../../api/crd-definitions.ts';
import type { CustomResourceDefinition } from '../../api/kubernetes.ts';
import { condition } from '../../test/fixtures/observed-cluster.ts';
import { areServed, judgeDefinitions, judgeLeaseTimes, judgeServer } from './check-api-server.ts';

const NOW = Date.parse('2026-11-20T10:00:00Z');
const levels = (finding: readonly { readonly level: string }[]) => finding.map(({ level }) => level);
const facts = { version: 'v1.33.1', minor: 33, time: NOW, localTime: NOW };

describe('the API server', () => {
  test.each<[string, Partial<typeof facts>, string[]]>([
    ['of a supported version', {}, ['ok', 'ok']],
    ['of an old version', { version: 'v1.27.3', minor: 27 }, ['failure', 'ok']],
    ['whose clock is a little ahead', { time: NOW + 4_000 }, ['ok', 'ok']],
    ['whose clock is far behind', { time: NOW - 90_000 }, ['ok', 'warning']],
  ])('%s', (_, more, expected) => {
    expect(levels(judgeServer({ ...facts, ...more }))).toEqual(expected);
  });
});

describe('the renewal of a lease', () => {
  test.each<[string, string | undefined, string[], boolean?]>([
    ['just now', '2026-11-20T10:00:01.000000Z', ['ok']],
    ['long ago, by a node that no longer exists', '2026-11-19T10:00:00.000000Z', ['ok'], false],
    ['long ago, by a node that is Ready', '2026-11-20T09:58:00.000000Z', ['failure']],
    ['in a little while', '2026-11-20T10:00:30.000000Z', ['warning']],
    ['in an hour', '2026-11-20T11:00:00.000000Z', ['failure']],
    ['never', undefined, ['ok']],
  ])('%s', (_, renewTime, expected, isAlive = true) => {
    expect(levels(judgeLeaseTimes([{ of: 'node a', renewTime, isAlive }], NOW))).toEqual(expected);
  });
});

const established = { conditions: [condition('Established', 'True')] };
const PRESENT = crdDefinitions.map((definition) => ({
  ...crdOf(definition),
  status: established,
})) as unknown as readonly CustomResourceDefinition[];
const NODES = 'machineconfignodes.machineconfiguration.openshift.io';

/** @returns the definitions with one of them changed. */
function withNodes(change: (text: string) => string): readonly CustomResourceDefinition[] {
  return PRESENT.map((definition) =>
    definition.metadata.name === NODES
      ? (JSON.parse(change(JSON.stringify(definition))) as CustomResourceDefinition)
      : definition,
  );
}

describe('the CRDs', () => {
  test('of this version are accepted', () => {
    expect(judgeDefinitions(PRESENT)).toMatchObject([{ level: 'ok' }]);
    expect(areServed(PRESENT)).toBe(true);
  });

  test('with one missing', () => {
    const some = PRESENT.filter(({ metadata }) => metadata.name !== NODES);
    expect(judgeDefinitions(some)).toMatchObject([{ level: 'failure', what: `${NODES} is missing` }]);
    expect(areServed(some)).toBe(false);
  });

  test('with one that lacks a field of this version', () => {
    const other = withNodes((text) => text.replaceAll('"bytesTotal":', '"bytes":'));
    expect(judgeDefinitions(other)).toMatchObject([
      {
        level: 'failure',
        what: `${NODES} belongs to another version: it does not have status.staging.bytesTotal`,
      },
    ]);
  });

  test('with one that is not served yet', () => {
    const other = withNodes((text) => text.replace('"status":"True"', '"status":"False"'));
    expect(judgeDefinitions(other)).toMatchObject([
      { level: 'failure', what: `${NODES} is not Established` },
    ]);
  });
});
