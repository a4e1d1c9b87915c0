import { expect, test } from 'vitest';
import type { MachineConfiguration } from '../../api/machine-configuration.ts';
import { present } from '../../api/present.ts';
import { aMachineOSConfig } from '../../test/fixtures/objects.ts';
import { condition, machineConfigNode, observed, pool, SINCE } from '../../test/fixtures/observed-cluster.ts';
import { judgeFailingSteps } from './check-failing-steps.ts';

const NOW = Date.parse(SINCE) + 3_720_000;
const WORDS = 'patch Node a: admission webhook "nodes.example.org" denied the request';
const step = {
  apiVersion: 'v1',
  kind: 'Node',
  name: 'a',
  step: 'cordoning it',
  reason: 'Refused' as const,
  message: WORDS,
  since: SINCE,
};
const configurationThatSays = (
  type: string,
  message: string,
  failingSteps?: (typeof step)[],
): MachineConfiguration => ({
  apiVersion: 'operator.openshift.io/v1',
  kind: 'MachineConfiguration',
  metadata: { name: 'cluster' },
  spec: {},
  status: { conditions: [condition(type, 'True', message)], ...present({ failingSteps }) },
});
const whatIn = (...given: Parameters<typeof judgeFailingSteps>) =>
  judgeFailingSteps(...given).map(({ what }) => what);

test('a cluster in which nothing fails says so', () => {
  const cluster = observed({ pools: [pool([])], machineOSConfigs: [aMachineOSConfig('worker')] });
  expect(judgeFailingSteps(cluster, undefined, NOW)).toEqual([
    {
      level: 'ok',
      check: 'failing steps',
      what: 'nothing fails that operator, builder or daemons have to do',
    },
  ]);
});

test('a step of a pool names object, step, the words, since when, and what to do about its kind', () => {
  const cluster = observed({ pools: [pool([], { failingSteps: [step] })] });
  expect(judgeFailingSteps(cluster, undefined, NOW)).toEqual([
    {
      level: 'failure',
      check: 'failing steps',
      what: `Node a: cordoning it fails: ${WORDS} (since ${SINCE}, for 1h2m)`,
      fix: expect.stringContaining('a webhook'),
    },
  ]);
});

test.each([
  ['Conflict', '--show-managed-fields'],
  ['Throttled', 'busy'],
  ['Unavailable', 'check the API server'],
  ['Unexpected', 'kubectl logs'],
] as const)('what to do follows from the kind of failure: %s', (reason, fix) => {
  const cluster = observed({ pools: [pool([], { failingSteps: [{ ...step, reason }] })] });
  expect(judgeFailingSteps(cluster, undefined, NOW)).toMatchObject([{ fix: expect.stringContaining(fix) }]);
});

test('what the builder can not do is one finding for each step, whatever the words are', () => {
  const config = aMachineOSConfig('worker');
  const failing = (name: string, doing: string) => ({
    ...step,
    kind: 'MachineOSConfig',
    name,
    step: doing,
    message: 'no; not now',
  });
  const failingSteps = [failing('worker', 'keeping its build'), failing('worker', 'deleting engines')];
  const conditions = [condition('StepsFailing', 'True', 'keeping its build fails: no; not now')];
  const machineOSConfigs = [{ ...config, status: { conditions, failingSteps } }];
  expect(whatIn(observed({ machineOSConfigs }), undefined, NOW)).toEqual(
    [
      'MachineOSConfig worker: keeping its build fails: no; not now',
      'MachineOSConfig worker: deleting engines fails: no; not now',
    ].map((what) => `${what} (since ${SINCE}, for 1h2m)`),
  );
});

test('what a daemon can not do, and a builder of an earlier version, is in conditions, as they say it', () => {
  const config = aMachineOSConfig('worker');
  const conditions = [condition('StepsFailing', 'True', 'keeping its build fails: no; deleting fails: no')];
  const cluster = observed({
    machineOSConfigs: [{ ...config, status: { conditions } }],
    machineConfigNodes: [
      machineConfigNode('a', {
        conditions: [
          condition('DaemonStepsFailing', 'True', 'reporting fails: no'),
          condition('Stalled', 'True', 'not this'),
        ],
      }),
    ],
  });
  expect(whatIn(cluster, undefined, NOW)).toEqual(
    [
      'MachineOSConfig worker: keeping its build fails: no; deleting fails: no',
      'Node a: reporting fails: no',
    ].map((what) => `${what} (since ${SINCE}, for 1h2m)`),
  );
});

test('a step that several statuses have is one finding', () => {
  const cluster = observed({
    pools: [pool([], { failingSteps: [step] }), pool([], { failingSteps: [step] })],
    machineConfigNodes: [
      machineConfigNode('a', {
        conditions: [condition('StepsFailing', 'True', `cordoning it fails: ${WORDS}`)],
      }),
    ],
  });
  const other = { ...step, kind: 'ConfigMap', name: 'b', step: 'reading it' };
  const configuration = configurationThatSays('Degraded', 'two steps', [step, other]);
  const found = judgeFailingSteps(cluster, configuration, NOW);
  expect(found.map(({ what }) => what.slice(0, 12))).toEqual(['Node a: cord', 'ConfigMap b:']);
  expect(found[0]).toMatchObject({ fix: expect.stringContaining('a webhook') });
});

test('a MachineConfiguration of an earlier version says what its condition says', () => {
  const configuration = configurationThatSays('Degraded', 'Node a: cordoning it fails: no; and 1 more');
  expect(whatIn(observed({}), configuration, NOW)).toEqual([
    `Node a: cordoning it fails: no; and 1 more (since ${SINCE}, for 1h2m)`,
  ]);
});

test('what fails of layering is in the MachineConfiguration alone', () => {
  const configuration = configurationThatSays('LayeringDegraded', 'creating the builder fails: no');
  expect(whatIn(observed({}), configuration, NOW)).toEqual([
    `ConfigMap on-cluster-layering: creating the builder fails: no (since ${SINCE}, for 1h2m)`,
  ]);
});
