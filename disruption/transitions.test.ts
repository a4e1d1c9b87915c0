import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formatActions } from '../api/disruption-action.ts';
import type { ClusterPolicies } from '../api/disruption-policy.ts';
import { configOf } from '../test/fixtures/configs.ts';
import { defaultPolicySettings, effectivePolicies, policyDigest } from './effective-policies.ts';
import {
  encodeTransitionLabel,
  findTransition,
  MAX_LABEL_BYTES,
  parseTransitionLabel,
  predictTransitions,
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
  encodeTransitionLabel(label(predictTransitions({ layered: true, froms: [from, older], to, policies }))),
);

describe('the transitions of an image', () => {
  test('a state that the label names takes its actions', () => {
    const found = findTransition(parsed, { config: 'rendered-worker-1', base: 'base@1' }, digest);
    expect(found).toMatchObject({
      kind: 'known',
      actions: [{ type: 'Restart', service: 'chronyd.service' }],
    });
  });

  test.each([
    ['another config', { config: 'rendered-worker-x', base: 'base@1' }, digest, /has no transition from/],
    ['another base', { config: 'rendered-worker-1', base: 'base@9' }, digest, /has no transition from/],
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

  test.each([
    [{ config: '', base: '' }, 'a node without a config on an unknown base image'],
    [{ config: 'c', base: '' }, 'c on an unknown base image'],
    [{ config: '', base: 'b' }, 'a node without a config on b'],
  ])('a state of %j is named in the reason', (state, name) => {
    const why = `the transition label has no transition from ${name}`;
    expect(findTransition(parsed, state, digest)).toEqual({ kind: 'reboot', why });
  });

  test('the same states in any order and number give the same text', () => {
    const one = predictTransitions({ layered: true, froms: [from, older], to, policies });
    const other = predictTransitions({ layered: true, froms: [older, from, older], to, policies });
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

  const aTransition = (index: number, subject = '') => ({
    config: `rendered-worker-${index}`,
    base: 'b'.repeat(400),
    actions: [],
    causes: [{ subject, kind: 'file' as const, change: 'changed' as const, rule: 'r', actions: [] }],
  });
  const withSubject = (bytes: number) => label([aTransition(0, 'x'.repeat(bytes))]);

  test('a label of exactly the most bytes keeps its causes, one of a byte more has none', () => {
    const most = MAX_LABEL_BYTES - Buffer.byteLength(encodeTransitionLabel(withSubject(0)));
    const whole = encodeTransitionLabel(withSubject(most));
    expect(Buffer.byteLength(whole)).toBe(MAX_LABEL_BYTES);
    expect(JSON.parse(whole).transitions[0].causes).toHaveLength(1);
    expect(JSON.parse(encodeTransitionLabel(withSubject(most + 1))).transitions[0].causes).toEqual([]);
  });

  test('the transitions that still do not fit are the later ones, half of them at a time', () => {
    const all = Array.from({ length: 5_001 }, (_, index) => aTransition(index));
    const { transitions } = JSON.parse(encodeTransitionLabel(label(all)));
    expect([2_500, 1_250, 625, 312, 156]).toContain(transitions.length);
    expect(transitions).toEqual(all.slice(0, transitions.length).map((each) => ({ ...each, causes: [] })));
    const doubled = all.slice(0, transitions.length * 2).map((each) => ({ ...each, causes: [] }));
    expect(Buffer.byteLength(JSON.stringify(label(doubled)))).toBeGreaterThan(MAX_LABEL_BYTES);
  });
});

describe('a transition has the actions of the policies in force', () => {
  const conf = (mirror: string) =>
    configOf(
      {
        '/etc/containers/registries.conf': `# ImageDigestMirrorSet: quay.io -> ${mirror}\n[[registry]]\nlocation = "quay.io"\nmirror-by-digest-only = true\n[[registry.mirror]]\nlocation = "${mirror}"\n`,
      },
      { name: `rendered-${mirror}` },
    );
  const ask = (policies: ClusterPolicies) =>
    predictTransitions({
      layered: true,
      froms: [{ config: conf('a.io'), base: 'base@1' }],
      to: { config: conf('b.io'), base: 'base@1' },
      policies,
    }).map(({ actions }) => formatActions(actions));

  test("by the container runtime's unit", () => {
    expect(ask(effectivePolicies(undefined, { containerRuntimeUnit: 'containerd.service' }))).toEqual([
      'Drain, Reload(containerd.service)',
    ]);
  });

  test('by the policies of mirror objects', () => {
    const changed = [{ type: 'None' as const }];
    const imageMirrors = [{ kind: 'ImageDigestMirrorSet' as const, changed }];
    expect(ask(effectivePolicies({ imageMirrors }, defaultPolicySettings))).toEqual(['None']);
  });

  test('an unknown base before means Reboot, also of an equal config', () => {
    const config = configOf({}, { name: 'rendered-a' });
    const transitions = predictTransitions({
      layered: true,
      froms: [
        { config, base: '' },
        { config, base: 'base@1' },
        { config, base: '' },
      ],
      to: { config, base: 'base@1' },
      policies,
    });
    expect(transitions.map(({ base, nodes, actions }) => [base, nodes, formatActions(actions)])).toEqual([
      ['', 2, 'Reboot'],
      ['base@1', 1, 'None'],
    ]);
    expect(transitions[0]?.causes[0]?.rule).toBe(
      'the base image changes from an unknown one to base@1: Reboot',
    );
  });

  test('the number of nodes is not part of the label', () => {
    const more = predictTransitions({ layered: true, froms: [from, from, older], to, policies });
    const less = predictTransitions({ layered: true, froms: [from, older], to, policies });
    expect(encodeTransitionLabel(label(more))).toBe(encodeTransitionLabel(label(less)));
    expect(encodeTransitionLabel(label(more))).not.toContain('"nodes"');
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

  const [predicted] = predictTransitions({ layered: true, froms: [from], to, policies });
  const transition = { config: 'c', base: 'b', actions: [], causes: [] };
  const ofCauses = (count: number) => ({ ...transition, causes: Array(count).fill(predicted?.causes[0]) });
  const ofActions = (count: number) => ({ ...transition, actions: Array(count).fill({ type: 'Reboot' }) });

  test.each<[string, readonly object[], readonly object[]]>([
    [
      'a config’s name',
      [{ ...transition, config: 'c'.repeat(253) }],
      [{ ...transition, config: 'c'.repeat(254) }],
    ],
    [
      'an image’s name',
      [{ ...transition, base: 'b'.repeat(447) }],
      [{ ...transition, base: 'b'.repeat(448) }],
    ],
    ['actions', [ofActions(50)], [ofActions(51)]],
    ['causes', [ofCauses(1000)], [ofCauses(1001)]],
    ['transitions', Array(1000).fill(transition), Array(1001).fill(transition)],
  ])('has limits: %s', (_what, most, more) => {
    const parse = (transitions: readonly object[]) =>
      parseTransitionLabel(JSON.stringify({ ...valid, transitions }));
    expect(parse(most)).toMatchObject({ ok: true });
    expect(parse(more)).toMatchObject({ ok: false, why: expect.stringContaining('is invalid: transitions') });
  });

  test('of as many bytes as allowed is read, of one more it is not', () => {
    const text = JSON.stringify(valid);
    expect(parseTransitionLabel(text.padEnd(MAX_LABEL_BYTES)).ok).toBe(true);
    expect(parseTransitionLabel(text.padEnd(MAX_LABEL_BYTES + 1))).toEqual({
      ok: false,
      why: 'the transition label is larger than 400000 bytes',
    });
  });

  test('whatever the text, parsing does not throw', () => {
    fc.assert(fc.property(fc.oneof(fc.string(), fc.json()), (text) => void parseTransitionLabel(text)));
  });
});
