import { expect, test } from 'vitest';
import type { Deployment } from '../../api/kubernetes.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import type { Condition } from '../../api/object.ts';
import type { SettingFields } from '../../api/pool-settings/table.ts';
import { aPool } from '../../test/fixtures/objects.ts';
import { condition, observed } from '../../test/fixtures/observed-cluster.ts';
import { judgeMonitoring } from './check-monitoring.ts';

function pool(name: string, shale: SettingFields, ...conditions: Condition[]): MachineConfigPool {
  return { ...aPool(name, { shale }), status: { conditions } };
}
const operatorWith = (...args: readonly string[]) =>
  ({ spec: { template: { spec: { containers: [{ args }] } } } }) as unknown as Deployment;
const ON_CRITICAL = { holdOnAlerts: ['severity="critical"'] };
const held = (message: string, reason: string) => condition('UpdatesHeld', 'True', message, reason);
const waiting = (of: MachineConfigPool, ...heldUpdates: readonly { reason: string; message: string }[]) => ({
  ...of,
  status: { ...of.status, heldUpdates: [...heldUpdates] },
});
const ALERTS = { reason: 'AlertsUnknown', message: 'alerts: connect ECONNREFUSED' };

test.each<[string, readonly MachineConfigPool[], Deployment | undefined, readonly string[]]>([
  ['no pool waits for anything', [pool('worker', {})], operatorWith('operator'), []],
  [
    'nobody can be asked for alerts',
    [pool('infra', ON_CRITICAL), pool('worker', ON_CRITICAL), pool('other', {})],
    operatorWith('operator', '--prometheus-url', 'http://p'),
    [
      "failure pools infra, worker: no update starts, because spec.shale.holdOnAlerts needs --alertmanager-url, which the operator doesn't have",
    ],
  ],
  [
    'nobody can be asked for queries',
    [pool('worker', { holdOnQueries: ['up == 0'] })],
    operatorWith('operator', '--alertmanager-url=http://a'),
    [
      "failure pool worker: no update starts, because spec.shale.holdOnQueries needs --prometheus-url, which the operator doesn't have",
    ],
  ],
  ['there is no operator at all', [pool('worker', ON_CRITICAL)], undefined, []],
  [
    'both are asked',
    [
      pool(
        'worker',
        { ...ON_CRITICAL, holdOnQueries: ['up == 0'] },
        held('1 alert is firing', 'AlertsFiring'),
      ),
    ],
    operatorWith('--alertmanager-url=http://a', '--prometheus-url', 'http://p', '--page-port', '1'),
    [
      'ok pool worker: the operator asks Alertmanager http://a',
      'ok pool worker: the operator asks Prometheus http://p',
    ],
  ],
  [
    'one does not answer, whatever else the pool waits for',
    [
      pool('infra', ON_CRITICAL),
      waiting(pool('worker', ON_CRITICAL), { reason: 'AwaitingPools', message: 'pool infra' }, ALERTS),
    ],
    operatorWith('--alertmanager-url=http://a'),
    [
      'failure pool worker: the operator got no answer from Alertmanager http://a: alerts: connect ECONNREFUSED',
    ],
  ],
  [
    'an operator before 0.2 reports a condition only',
    [
      pool('worker', ON_CRITICAL, held('it is unknown whether any is firing', 'AlertsUnknown')),
      pool('infra', ON_CRITICAL, held('it is unknown whether any is firing, too', 'AwaitingPools')),
    ],
    operatorWith('--alertmanager-url=http://a'),
    [
      'failure pool worker: the operator got no answer from Alertmanager http://a: it is unknown whether any is firing',
    ],
  ],
  [
    'it did not answer, and does again',
    [
      pool(
        'worker',
        ON_CRITICAL,
        condition(
          'UpdatesHeld',
          'False',
          'it is unknown whether any is firing: ECONNREFUSED',
          'AlertsUnknown',
        ),
      ),
    ],
    operatorWith('--alertmanager-url=http://a'),
    ['ok pool worker: the operator asks Alertmanager http://a'],
  ],
  [
    'a setting is malformed',
    [pool('worker', { holdOnAlerts: ['severity'] }), pool('infra', ON_CRITICAL)],
    operatorWith('--alertmanager-url=http://a'),
    [
      "failure pool worker: spec.shale.holdOnAlerts can't be read, so no update starts",
      'ok pool infra: the operator asks Alertmanager http://a',
    ],
  ],
])('%s', (_what, pools, operator, expected) => {
  const found = judgeMonitoring(observed({ pools, operator }), 'shale-system');
  expect(found.map(({ level, what }) => `${level} ${what}`)).toEqual(expected);
});

test('says which flag to add, and where, or which setting to remove', () => {
  const cluster = observed({ pools: [pool('worker', ON_CRITICAL)], operator: operatorWith('operator') });
  expect(judgeMonitoring(cluster, 'shale-system')).toMatchObject([
    {
      check: 'monitoring',
      fix: 'add --alertmanager-url with the root of the Alertmanager to the arguments of deployment/shale-operator in shale-system (operator.arguments of the Helm chart), or remove spec.shale.holdOnAlerts: kubectl edit mcp worker',
    },
  ]);
});
