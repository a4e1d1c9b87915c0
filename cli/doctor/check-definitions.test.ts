import { describe, expect, test } from 'vitest';
import { crdOf } from '../../api/crd.ts';
import { crdDefinitions } from '../../api/crd-definitions.ts';
import type { CustomResourceDefinition } from '../../api/kubernetes.ts';
import { condition } from '../../test/fixtures/observed-cluster.ts';
import { areServed, judgeDefinitions } from './check-definitions.ts';

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
  test('of this version are as they should be', () => {
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
