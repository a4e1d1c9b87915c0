import { expect, test } from 'vitest';
import type { Deployment } from '../../api/kubernetes.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import type { Condition } from '../../api/object.ts';
import { aPool } from '../../test/fixtures/objects.ts';
import { condition, observed } from '../../test/fixtures/observed-cluster.ts';
import { judgeLockServices } from './check-lock-services.ts';

const URL = 'https://lock.example.com/base';
function pool(name: string, url: string | undefined, ...conditions: Condition[]): MachineConfigPool {
  const shale = url === undefined ? {} : { fleetLock: { url } };
  return { ...aPool(name, { shale }), status: { conditions } };
}
const operatorWith = (...args: readonly string[]) =>
  ({ spec: { template: { spec: { containers: [{ args }] } } } }) as unknown as Deployment;
const unknown = (status: Condition['status'] = 'True') =>
  condition(
    'UpdatesHeld',
    status,
    'reboots wait for a slot of the lock service (spec.shale.fleetLock): it is unknown whether one is free: ECONNREFUSED',
    'RebootSlotUnknown',
  );

test.each<[string, readonly MachineConfigPool[], Deployment | undefined, readonly string[]]>([
  ['no pool names a service', [pool('worker', undefined)], operatorWith('--fleetlock-url', URL), []],
  ['there is no operator at all', [pool('worker', URL)], undefined, []],
  [
    'the operator may ask nobody',
    [pool('worker', URL), pool('infra', URL), pool('other', undefined)],
    operatorWith('operator', '--alertmanager-url', URL),
    [
      `failure pools worker, infra: no node reboots, because spec.shale.fleetLock names ${URL}, which --fleetlock-url of the operator doesn't list`,
    ],
  ],
  [
    'the operator may ask another one',
    [pool('worker', URL), pool('infra', 'https://other.example.com')],
    operatorWith('--fleetlock-url', 'https://other.example.com/', 'https://third.example.com'),
    [
      `failure pool worker: no node reboots, because spec.shale.fleetLock names ${URL}, which --fleetlock-url of the operator doesn't list`,
      'ok pool infra: the operator asks the lock service https://other.example.com',
    ],
  ],
  [
    'each is asked, whatever its answer',
    [
      pool('worker', `${URL}/`, condition('UpdatesHeld', 'True', 'lock refuses one', 'AwaitingRebootSlot')),
      pool('infra', URL, unknown('False')),
    ],
    operatorWith(`--fleetlock-url=${URL}`),
    [`ok pools worker, infra: the operator asks the lock service ${URL}`],
  ],
  [
    'one does not answer',
    [pool('worker', URL), pool('infra', URL, unknown())],
    operatorWith('--fleetlock-url', URL),
    [`failure pool infra: the operator got no answer from the lock service ${URL}: ${unknown().message}`],
  ],
  [
    'a setting is malformed',
    [pool('worker', 'ftp://lock.example.com')],
    operatorWith('--fleetlock-url', 'https://ann:secret@lock.example.com'),
    ["failure pool worker: spec.shale.fleetLock can't be read, so no node reboots"],
  ],
])('%s', (_what, pools, operator, expected) => {
  const found = judgeLockServices(observed({ pools, operator }), 'shale-system');
  expect(found.map(({ level, what }) => `${level} ${what}`)).toEqual(expected);
});

test('says what to add to which flag, and where, or which setting to correct', () => {
  const cluster = observed({ pools: [pool('worker', URL)], operator: operatorWith('operator') });
  expect(judgeLockServices(cluster, 'shale-system')).toMatchObject([
    {
      check: 'lock services',
      fix: `add --fleetlock-url ${URL} to the arguments of deployment/shale-operator in shale-system (operator.arguments of the Helm chart), or correct spec.shale.fleetLock: kubectl edit mcp worker`,
    },
  ]);
});
