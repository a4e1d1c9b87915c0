import { expect, test } from 'vitest';
import type { Deployment } from '../../api/kubernetes.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import type { SettingFields } from '../../api/pool-settings/table.ts';
import { aPool } from '../../test/fixtures/objects.ts';
import { observed } from '../../test/fixtures/observed-cluster.ts';
import { judgeOutsideServices } from './check-outside-services.ts';

const URL = 'https://lock.example.com/base';
const pool = (name: string, shale: SettingFields = {}) => aPool(name, { shale });
const operatorWith = (...args: readonly string[]) =>
  ({ spec: { template: { spec: { containers: [{ args }] } } } }) as unknown as Deployment;
const ON_ALERTS = { holdOnAlerts: ['severity="critical"'] };
const ON_LOCK = { fleetLock: { url: URL } };

test.each<[string, readonly MachineConfigPool[], Deployment | undefined, readonly string[]]>([
  ['no pool waits for anything', [pool('worker')], operatorWith('--fleetlock-url', URL), []],
  ['there is no operator at all', [pool('worker', { ...ON_ALERTS, ...ON_LOCK })], undefined, []],
  [
    'nobody can be asked for alerts',
    [pool('infra', ON_ALERTS), pool('worker', ON_ALERTS), pool('other')],
    operatorWith('operator', '--prometheus-url', 'http://p'),
    [
      "failure pools infra, worker: no update starts, because spec.shale.holdOnAlerts needs --alertmanager-url URL, which the operator doesn't have",
    ],
  ],
  [
    'the flag for queries is empty',
    [pool('worker', { holdOnQueries: ['up == 0'] })],
    operatorWith('--alertmanager-url=http://a', '--prometheus-url='),
    [
      "failure pool worker: no update starts, because spec.shale.holdOnQueries needs --prometheus-url URL, which the operator doesn't have",
    ],
  ],
  [
    'both are asked',
    [pool('worker', { ...ON_ALERTS, holdOnQueries: ['up == 0'] })],
    operatorWith('--alertmanager-url=http://a', '--prometheus-url', 'http://p', '--page-port', '1'),
    [
      'ok pool worker: the operator has --alertmanager-url, which spec.shale.holdOnAlerts needs',
      'ok pool worker: the operator has --prometheus-url, which spec.shale.holdOnQueries needs',
    ],
  ],
  [
    'the operator may ask no lock service',
    [pool('worker', ON_LOCK), pool('infra', ON_LOCK), pool('other')],
    operatorWith('operator', '--alertmanager-url', URL),
    [
      `failure pools worker, infra: no node reboots, because spec.shale.fleetLock needs --fleetlock-url ${URL}, which the operator doesn't have`,
    ],
  ],
  [
    'the operator may ask another lock service',
    [pool('worker', ON_LOCK), pool('infra', { fleetLock: { url: 'https://other.example.com' } })],
    operatorWith('--fleetlock-url', 'https://other.example.com/', 'https://third.example.com'),
    [
      `failure pool worker: no node reboots, because spec.shale.fleetLock needs --fleetlock-url ${URL}, which the operator doesn't have`,
      'ok pool infra: the operator has --fleetlock-url, which spec.shale.fleetLock needs',
    ],
  ],
  [
    'the settings can not be read, which is a condition of the pool',
    [
      pool('worker', { holdOnAlerts: ['severity'] }),
      pool('infra', { fleetLock: { url: 'ftp://lock.example.com' } }),
    ],
    operatorWith('--fleetlock-url', 'https://ann:secret@lock.example.com'),
    [],
  ],
])('%s', (_what, pools, operator, expected) => {
  const found = judgeOutsideServices(observed({ pools, operator }), 'shale-system');
  expect(found.map(({ level, what }) => `${level} ${what}`)).toEqual(expected);
});

test('says which flag to add, and where, or which setting to change', () => {
  const pools = [pool('worker', { ...ON_ALERTS, ...ON_LOCK })];
  const where =
    'to the arguments of deployment/shale-operator in shale-system (operator.arguments of the Helm chart)';
  expect(
    judgeOutsideServices(observed({ pools, operator: operatorWith('operator') }), 'shale-system'),
  ).toMatchObject([
    {
      check: 'outside services',
      fix: `add --alertmanager-url URL ${where}, or change spec.shale.holdOnAlerts: kubectl edit mcp worker`,
    },
    {
      check: 'outside services',
      fix: `add --fleetlock-url ${URL} ${where}, or change spec.shale.fleetLock: kubectl edit mcp worker`,
    },
  ]);
});
