import { describe, expect, test } from 'vitest';
import { formatActions, type PolicyAction } from '../api/disruption-action.ts';
import type { NodeDisruptionPolicy } from '../api/disruption-policy.ts';
import { mergeMirrorObjects } from '../machineconfig/registries/mirror-rules.ts';
import { formatRegistriesConf } from '../machineconfig/registries/registries-conf.ts';
import { registryEntries } from '../machineconfig/registries/registry-entries.ts';
import { configOf } from '../test/fixtures/configs.ts';
import { decideActions } from './actions.ts';
import { defaultPolicySettings, effectivePolicies } from './effective-policies.ts';
import { mirrorRuleChanges } from './registries-conf-change.ts';

type Mirrors = Readonly<Record<string, readonly string[]>>;

const rules = (mirrors: Mirrors) =>
  Object.entries(mirrors).map(([source, list]) => ({ source, mirrors: [...list] }));

function conf(idms: Mirrors, itms: Mirrors = {}): string {
  const merged = mergeMirrorObjects({
    icsp: [],
    idms: [
      {
        apiVersion: 'config.openshift.io/v1',
        kind: 'ImageDigestMirrorSet',
        metadata: { name: 'a' },
        spec: { imageDigestMirrors: rules(idms) },
      },
    ],
    itms: [
      {
        apiVersion: 'config.openshift.io/v1',
        kind: 'ImageTagMirrorSet',
        metadata: { name: 'a' },
        spec: { imageTagMirrors: rules(itms) },
      },
    ],
  });
  if (!merged.ok) throw new Error(JSON.stringify(merged.problems));
  const joined = registryEntries(merged.rules, { insecure: [], blocked: [] });
  if (!joined.ok) throw new Error(JSON.stringify(joined.problems));
  return formatRegistriesConf(merged.rules, joined.entries);
}

function decide(
  from: string | undefined,
  to: string | undefined,
  imageMirrors: NodeDisruptionPolicy['imageMirrors'] = [],
) {
  const at = (text: string | undefined) =>
    configOf(text === undefined ? {} : { '/etc/containers/registries.conf': text });
  const policies = effectivePolicies({ imageMirrors }, defaultPolicySettings);
  const { actions, causes } = decideActions({ layered: false, from: at(from), to: at(to), policies });
  return [formatActions(actions), causes[0]?.rule] as const;
}

const none: PolicyAction[] = [{ type: 'None' }];
const one = { 'a.example.org/x': ['m.example.org/x'] };
const two = { ...one, 'b.example.org': ['m.example.org/b'] };

test('changed rules are identified by the kind of their object', () => {
  expect(mirrorRuleChanges(conf(one, one), conf(two))).toEqual([
    { kind: 'ImageDigestMirrorSet', source: 'b.example.org', change: 'added' },
    { kind: 'ImageTagMirrorSet', source: 'a.example.org/x', change: 'removed' },
  ]);
  const reordered = { 'a.example.org/x': ['n.example.org/x', 'm.example.org/x'] };
  expect(mirrorRuleChanges(conf(one), conf(reordered))).toEqual([
    { kind: 'ImageDigestMirrorSet', source: 'a.example.org/x', change: 'changed' },
  ]);
});

describe('the actions of a mirror rule', () => {
  test('are those of the safe rule when no policy matches', () => {
    expect(decide(conf(one), conf(two))[0]).toBe('Reload(crio.service)');
    expect(decide(conf(two), conf(one))[0]).toBe('Drain, Reload(crio.service)');
    expect(decide(conf(one), conf(one, one))[0]).toBe('Drain, Reload(crio.service)');
  });

  test("is the admin's policy for its kind and change", () => {
    const policy = [{ kind: 'ImageDigestMirrorSet' as const, removed: none }];
    expect(decide(conf(two), conf(one), policy)).toEqual([
      'None',
      'policy for a removed ImageDigestMirrorSet rule (b.example.org)',
    ]);
    expect(decide(conf(one), conf(two), policy)[0]).toBe('Reload(crio.service)');
  });

  test('include those of the safe rule for rules that no policy matches', () => {
    const policy = [{ kind: 'ImageDigestMirrorSet' as const, removed: none }];
    const [actions, rule] = decide(conf(two), conf(one, one), policy);
    expect(actions).toBe('Drain, Reload(crio.service)');
    expect(rule).toContain('is no longer limited to digests');
    expect(rule).toContain('policy for a removed ImageDigestMirrorSet rule');
  });

  test('include the reload for safe changes that no policy matches', () => {
    const policy = [{ kind: 'ImageDigestMirrorSet' as const, removed: none }];
    const other = { ...one, 'c.example.org': ['m.example.org/c'] };
    expect(decide(conf(two), conf(other), policy)[0]).toBe('Reload(crio.service)');
  });

  test('can include a reboot', () => {
    const policy = [{ kind: 'ImageTagMirrorSet' as const, added: [{ type: 'Reboot' as const }] }];
    expect(decide(conf(one), conf(one, one), policy)[0]).toBe('Reboot');
  });

  test.each<[string, Mirrors, Mirrors]>([
    ['one rule', one, {}],
    ['several rules', two, {}],
    ['rules of two kinds', one, two],
  ])('include what comes and goes with the file: the first and the last object, %s', (_what, idms, itms) => {
    const policy = (['ImageDigestMirrorSet', 'ImageTagMirrorSet'] as const).map((kind) => ({
      kind,
      added: none,
      removed: none,
    }));
    expect(decide(undefined, conf(idms, itms), policy)[0]).toBe('None');
    expect(decide(conf(idms, itms), undefined, policy)[0]).toBe('None');
  });

  test.each<[string, string | undefined, string | undefined, string]>([
    [
      'rules of a kind that no policy matches go with the file',
      conf(one, one),
      undefined,
      'Drain, Reload(crio.service)',
    ],
    [
      'a file that Shale did not write goes',
      'unqualified-search-registries = ["docker.io"]\n',
      undefined,
      'Drain, Reload(crio.service)',
    ],
    [
      'the file that goes looks elsewhere for images',
      conf(one).replace('docker.io', 'quay.io'),
      undefined,
      'Drain, Reload(crio.service)',
    ],
    [
      'the file replaces one that Shale did not write',
      'unqualified-search-registries = ["quay.io"]\n',
      conf(one),
      'Drain, Reload(crio.service)',
    ],
  ])('do not apply where %s', (_what, from, to, expected) => {
    const policy = [{ kind: 'ImageDigestMirrorSet' as const, added: none, removed: none }];
    expect(decide(from, to, policy)[0]).toBe(expected);
  });

  test('do not apply to another change of the same file', () => {
    const policy = [{ kind: 'ImageDigestMirrorSet' as const, removed: none }];
    const other = conf(one).replace('docker.io', 'quay.io');
    expect(decide(conf(two), other, policy)[0]).toBe('Drain, Reload(crio.service)');
  });
});
