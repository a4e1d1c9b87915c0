import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { defaultPolicySettings } from './default-policies.ts';
import { effectivePolicies, policyDigest } from './effective-policies.ts';
import { configOf } from './testing/configs.ts';
import {
  computeTransitions,
  encodeTransitionLabel,
  findTransition,
  MAX_LABEL_BYTES,
  parseTransitionLabel,
  type TransitionLabel,
} from './transitions.ts';

const policies = effectivePolicies(
  {
    files: [
      {
        path: '/etc/chrony.conf',
        actions: [{ type: 'Restart', restart: { serviceName: 'chronyd.service' } }],
      },
    ],
  },
  defaultPolicySettings,
);
const digest = policyDigest(policies);
const named = (name: string, text: string) => configOf({ '/etc/chrony.conf': text }, { name });
const to = { config: named('rendered-worker-2', 'b'), base: 'base@1' };
const from = { config: named('rendered-worker-1', 'a'), base: 'base@1' };
const older = { config: named('rendered-worker-0', 'z'), base: 'base@0' };
const label = (transitions: TransitionLabel['transitions']): TransitionLabel => ({
  version: 1,
  policyDigest: digest,
  transitions,
});
const parsed = parseTransitionLabel(
  encodeTransitionLabel(label(computeTransitions({ froms: [from, older], to, policies }))),
);

describe('an image says what it asks of a node', () => {
  test('a state that the label names takes its actions', () => {
    const found = findTransition(parsed, { config: 'rendered-worker-1', base: 'base@1' }, digest);
    expect(found).toMatchObject({
      kind: 'known',
      actions: [{ type: 'Restart', service: 'chronyd.service' }],
    });
  });

  test.each([
    ['another config', { config: 'rendered-worker-x', base: 'base@1' }, digest, /does not name/],
    ['another base', { config: 'rendered-worker-1', base: 'base@9' }, digest, /does not name/],
    [
      'other policies in force',
      { config: 'rendered-worker-1', base: 'base@1' },
      `sha256:${'0'.repeat(64)}`,
      /other disruption policies/,
    ],
    [
      'policies unknown',
      { config: 'rendered-worker-1', base: 'base@1' },
      undefined,
      /other disruption policies/,
    ],
  ])('%s reboots', (_name, state, inForce, why) => {
    const found = findTransition(parsed, state, inForce);
    expect(found.kind === 'reboot' && found.why).toMatch(why);
  });

  test('the same states in any order and number give the same text', () => {
    const one = computeTransitions({ froms: [from, older], to, policies });
    const other = computeTransitions({ froms: [older, from, older], to, policies });
    expect(encodeTransitionLabel(label(one))).toBe(encodeTransitionLabel(label(other)));
  });

  test('a label that would be too large loses its causes first, and is never too large', () => {
    const many = (count: number, causes: number) =>
      Array.from({ length: count }, (_, index) => ({
        config: `rendered-worker-${index}`,
        base: 'b'.repeat(400),
        actions: [],
        causes: Array.from({ length: causes }, () => ({
          subject: `/etc/${'x'.repeat(500)}`,
          kind: 'file' as const,
          change: 'changed' as const,
          rule: 'r',
          actions: [],
        })),
      }));
    const withoutCauses = parseTransitionLabel(encodeTransitionLabel(label(many(10, 500))));
    expect(withoutCauses.ok && withoutCauses.label.transitions).toHaveLength(10);
    expect(Buffer.byteLength(encodeTransitionLabel(label(many(1000, 0))))).toBeLessThanOrEqual(
      MAX_LABEL_BYTES,
    );
  });
});

describe('a hostile label', () => {
  const valid = { version: 1, policyDigest: digest, transitions: [] };
  test.each([
    ['none', undefined],
    ['empty', ''],
    ['10 MB', ' '.repeat(10_000_000)],
    ['nested a thousand deep', `${'['.repeat(1000)}${']'.repeat(1000)}`],
    ['another version', JSON.stringify({ ...valid, version: 2 })],
    [
      'a service with a newline',
      JSON.stringify({
        ...valid,
        transitions: [
          {
            config: 'c',
            base: 'b',
            causes: [],
            actions: [{ type: 'Restart', service: 'a.service\nb.service' }],
          },
        ],
      }),
    ],
    [
      'a service that is an option',
      JSON.stringify({
        ...valid,
        transitions: [
          { config: 'c', base: 'b', causes: [], actions: [{ type: 'Restart', service: '--force' }] },
        ],
      }),
    ],
    [
      'an unknown action',
      JSON.stringify({
        ...valid,
        transitions: [{ config: 'c', base: 'b', causes: [], actions: [{ type: 'Format' }] }],
      }),
    ],
  ])('%s is not believed', (_name, text) => {
    const refused = parseTransitionLabel(text);
    expect(refused.ok).toBe(false);
    expect(findTransition(refused, { config: 'c', base: 'b' }, digest).kind).toBe('reboot');
  });

  test('whatever the text, parsing does not throw', () => {
    fc.assert(fc.property(fc.oneof(fc.string(), fc.json()), (text) => void parseTransitionLabel(text)));
  });
});
