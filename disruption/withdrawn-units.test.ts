import { expect, test } from 'vitest';
import type { NodeConfig } from '../machineconfig/node-config.ts';
import { configOf, emptyConfig, unitsOf } from '../test/fixtures/configs.ts';
import { decideActions } from './actions.ts';
import { withdrawnUnits } from './withdrawn-units.ts';

const brought = configOf({}, { units: unitsOf({ contents: '[Service]\n' }) });
const masked = configOf({}, { units: unitsOf({ masked: true }) });
const empty = configOf({}, { units: unitsOf({ contents: '' }) });
const byFile = configOf({ '/etc/systemd/system/x.service': '[Service]\n' });
const withDropIn = configOf({ '/etc/systemd/system/x.service.d/a.conf': '[Service]\n' });

const linkedTo = (target: string, path = '/etc/systemd/system/x.service'): NodeConfig => ({
  ...emptyConfig,
  links: new Map([[path, { path, target, hard: false, user: { id: 0 }, group: { id: 0 } }]]),
});

test.each<[string, NodeConfig, NodeConfig, string | undefined]>([
  ['that a config brings, and its target, too', brought, brought, undefined],
  ['that a target first brings', emptyConfig, brought, undefined],
  ['that a target masks', brought, masked, 'masked'],
  ['that stays masked', masked, masked, 'masked'],
  ['of the operating system that a target masks', emptyConfig, masked, 'masked'],
  ['whose file a target no longer has', brought, emptyConfig, 'removed'],
  ['whose file is empty in the target, and so is not written', brought, empty, 'removed'],
  ['that is masked no longer, and that the operating system may not have', masked, emptyConfig, 'removed'],
  ['that is masked no longer, and that the target brings', masked, brought, undefined],
  ['that comes as a file and goes', byFile, emptyConfig, 'removed'],
  ['that comes as a file and then as a unit', byFile, brought, undefined],
  ['that a target masks by a link', brought, linkedTo('/dev/null'), 'masked'],
  ['that a link masked before, and the target does not', linkedTo('/dev/null'), emptyConfig, 'removed'],
  [
    'of another directory that is linked to nothing',
    emptyConfig,
    linkedTo('/dev/null', '/etc/x.service'),
    undefined,
  ],
  ['that is a link to another one', emptyConfig, linkedTo('/usr/lib/systemd/system/y.service'), undefined],
  ['of which a drop-in goes', withDropIn, emptyConfig, undefined],
])('a unit %s', (_what, from, to, expected) => {
  expect(withdrawnUnits(from, to).get('x.service')).toBe(expected);
});

test('the rule of a cause says what becomes of a restart, and the action stays what the policy requires', () => {
  const restart = { type: 'Restart', restart: { serviceName: 'x.service' } } as const;
  const policies = { units: [{ name: 'x.service', actions: [restart] }] };
  const ruleOf = (from: NodeConfig, to: NodeConfig) => {
    const { actions, causes } = decideActions({ from, to, policies, layered: false });
    expect(actions.map(({ type }) => type)).toEqual(['DaemonReload', 'Restart']);
    return causes[0]?.rule;
  };
  expect(ruleOf(brought, masked)).toBe(
    'default policy for unit x.service; x.service is masked, so it is stopped',
  );
  expect(ruleOf(brought, emptyConfig)).toBe(
    'default policy for unit x.service; x.service is removed, so it is stopped, unless the operating system has a unit of that name',
  );
  expect(ruleOf(emptyConfig, brought)).toBe('default policy for unit x.service');
});
