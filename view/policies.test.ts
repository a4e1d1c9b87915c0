import { expect, test } from 'vitest';
import type { MachineConfiguration } from '../api/machine-configuration.ts';
import { condition } from '../test/fixtures/observed-cluster.ts';
import { policiesLag } from './policies.ts';

const configuration = (generation: number, status: MachineConfiguration['status']): MachineConfiguration => ({
  apiVersion: 'operator.openshift.io/v1',
  kind: 'MachineConfiguration',
  metadata: { name: 'cluster', generation },
  status,
});
const applied = (status: 'True' | 'False') =>
  condition('NodeDisruptionPolicyApplied', status, status === 'True' ? '' : 'spec.a: is wrong');

test.each<[string, MachineConfiguration | undefined, RegExp | undefined]>([
  ['there is no MachineConfiguration', undefined, undefined],
  [
    'they were applied',
    configuration(2, { observedGeneration: 2, conditions: [applied('True')] }),
    undefined,
  ],
  [
    'something else failed',
    configuration(2, { observedGeneration: 2, conditions: [condition('Layering', 'False', 'off')] }),
    undefined,
  ],
  [
    'the operator refused them',
    configuration(2, {
      observedGeneration: 2,
      conditions: [condition('Layering', 'True'), applied('False')],
    }),
    /^the policies in spec are not in effect: spec\.a: is wrong$/,
  ],
  [
    'spec is newer than what the operator has seen',
    configuration(3, { observedGeneration: 2, conditions: [applied('True')] }),
    /^spec has changed, but the operator has not applied it yet$/,
  ],
  ['the operator has seen nothing yet', configuration(1, undefined), /^spec has changed/],
])('policies in force and spec differ or not where %s', (_why, given, lag) => {
  const why = policiesLag(given);
  if (lag === undefined) expect(why).toBeUndefined();
  else expect(why).toMatch(lag);
});
