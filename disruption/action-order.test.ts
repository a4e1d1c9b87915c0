import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type DisruptionAction, formatAction, formatActions } from '../api/disruption-action.ts';
import { orderActions } from './action-order.ts';

const restart = (name: string): DisruptionAction => ({ type: 'Restart', service: `${name}.service` });
const drain: DisruptionAction = { type: 'Drain' };
const daemonReload: DisruptionAction = { type: 'DaemonReload' };
const [a, b, c] = [restart('a'), restart('b'), restart('c')];

test.each<[string, DisruptionAction[][], DisruptionAction[]]>([
  ['nothing', [[], []], []],
  ['a restart that another policy does last', [[b], [a, b]], [a, b]],
  ['a restart that another policy does first', [[a, b], [a]], [a, b]],
  [
    'an order that follows from two policies',
    [
      [b, c],
      [a, b],
    ],
    [a, b, c],
  ],
  ['policies that have nothing in common', [[b], [a]], [b, a]],
  [
    'policies that contradict each other',
    [
      [a, b],
      [b, a],
    ],
    [a, b, a],
  ],
  ['an action that one policy repeats', [[a, b, a]], [b, a]],
  ['what comes before services', [[a], [b, daemonReload], [c, drain]], [drain, daemonReload, a, b, c]],
  ['a reboot', [[a], [{ type: 'Reboot' }, b]], [{ type: 'Reboot' }]],
])('the order of %s', (_name, policies, expected) => {
  expect(formatActions(orderActions(policies))).toBe(formatActions(expected));
});

const anyPolicy = fc.uniqueArray(fc.constantFrom(...['a', 'b', 'c', 'd'].map(restart)), {
  maxLength: 4,
  selector: formatAction,
});

test('every policy finds its own order, and without a contradiction nothing is done twice', () => {
  fc.assert(
    fc.property(fc.array(anyPolicy, { maxLength: 5 }), (policies) => {
      const ordered = orderActions(policies).map(formatAction);
      for (const policy of policies) {
        const left = policy.map(formatAction);
        for (const action of ordered) if (action === left[0]) left.shift();
        expect(left).toEqual([]);
      }
      const names = [...new Set(policies.flat().map(formatAction))];
      expect(new Set(ordered)).toEqual(new Set(names));
      const isSorted = policies.every((policy) =>
        policy.every(
          (action, index) => index === 0 || formatAction(policy[index - 1] ?? action) < formatAction(action),
        ),
      );
      if (isSorted) expect(ordered).toHaveLength(names.length);
    }),
  );
});
