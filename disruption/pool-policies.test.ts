import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formatActions, type PolicyAction } from '../api/disruption-action.ts';
import type { ClusterPolicies, PoolDisruptionPolicy } from '../api/disruption-policy.ts';
import type { MachineConfigPool } from '../api/machine-config-pool.ts';
import type { MachineConfiguration, MachineConfigurationStatus } from '../api/machine-configuration.ts';
import { present } from '../api/present.ts';
import { configOf, emptyConfig, unitsOf } from '../test/fixtures/configs.ts';
import { aPool } from '../test/fixtures/objects.ts';
import { decideActions } from './actions.ts';
import { defaultPolicySettings, effectivePolicies, policyDigest } from './effective-policies.ts';
import {
  policiesOfDigest,
  policiesOfPool,
  policiesWithoutPools,
  poolPolicies,
  selectedPolicies,
  specifiedPolicies,
  summarisePools,
} from './pool-policies.ts';

const none: PolicyAction[] = [{ type: 'None' }];
const drain: PolicyAction[] = [{ type: 'Drain' }];
const rebootAll: PolicyAction[] = [{ type: 'Reboot' }];
const restart = (name: string): PolicyAction[] => [
  { type: 'Restart', restart: { serviceName: `${name}.service` } },
];
const files = (entries: Readonly<Record<string, PolicyAction[]>>) =>
  Object.entries(entries).map(([path, actions]) => ({ path, actions }));
const own = (name: string, of: Omit<PoolDisruptionPolicy, 'name'> = {}): PoolDisruptionPolicy => ({
  name,
  ...of,
});
const edge = { poolSelector: { matchLabels: { tier: 'edge' } } };
const specOf = (
  policies: PoolDisruptionPolicy[],
  cluster: Readonly<Record<string, PolicyAction[]>> = {},
) => ({
  nodeDisruptionPolicy: { files: files(cluster) },
  shale: { nodeDisruptionPolicies: policies },
});
const settings = defaultPolicySettings;
const labelled = (name: string, labels?: Record<string, string>): MachineConfigPool => {
  const pool = aPool(name);
  return { ...pool, metadata: { ...pool.metadata, ...present({ labels }) } };
};

function decide(
  spec: MachineConfiguration['spec'],
  path: string,
  labels: Record<string, string> = {},
): readonly [string, string | undefined] {
  const policies = specifiedPolicies(spec, { labels }, settings);
  const { actions, causes } = decideActions({
    from: emptyConfig,
    to: configOf({ [path]: 'a' }),
    policies,
    layered: false,
  });
  return [formatActions(actions), causes[0]?.rule];
}

describe('precedence', () => {
  const cluster = { '/etc/app': restart('app'), '/etc/app/boot': rebootAll };
  test.each<[string, PoolDisruptionPolicy[], string, string, string]>([
    [
      'a policy of another pool does not hold',
      [own('other', { poolSelector: { matchLabels: { tier: 'core' } }, files: files({ '/etc/app': none }) })],
      '/etc/app/x',
      'Restart(app.service)',
      'policy for /etc/app',
    ],
    [
      'the same path of spec.nodeDisruptionPolicy is replaced',
      [own('edge', { ...edge, files: files({ '/etc/app': none }) })],
      '/etc/app/x',
      'None',
      'policy for /etc/app (edge)',
    ],
    [
      'a longer path of spec.nodeDisruptionPolicy stays',
      [own('edge', { ...edge, files: files({ '/etc/app': none }) })],
      '/etc/app/boot/x',
      'Reboot',
      'policy for /etc/app/boot',
    ],
    [
      'the later of two for the same path',
      [
        own('first', { files: files({ '/etc/app': none }) }),
        own('second', { ...edge, files: files({ '/etc/app': drain }) }),
      ],
      '/etc/app/x',
      'Drain',
      'policy for /etc/app (second)',
    ],
    [
      'a pattern counts more than a directory that is not longer than what precedes its wildcard',
      [own('edge', { files: files({ '/etc/app/*.conf': none }) })],
      '/etc/app/x.conf',
      'None',
      'policy for /etc/app/*.conf (edge)',
    ],
    [
      'a pattern that does not match leaves the directory',
      [own('edge', { files: files({ '/etc/app/*.conf': none }) })],
      '/etc/app/x.yaml',
      'Restart(app.service)',
      'policy for /etc/app',
    ],
    [
      'a directory that the pattern only covers among others counts more',
      [own('edge', { files: files({ '/etc/**': none }) })],
      '/etc/app/x',
      'Restart(app.service)',
      'policy for /etc/app',
    ],
    [
      'a directory and a pattern that are equally specific both count',
      [own('edge', { files: files({ '/etc/app*/x': drain }) })],
      '/etc/app/x',
      'Drain, Restart(app.service)',
      'policy for /etc/app and policy for /etc/app*/x (edge)',
    ],
    [
      'of equally specific patterns none is weakened by another',
      [own('edge', { files: files({ '/etc/new/*.conf': none, '/etc/new/*': rebootAll }) })],
      '/etc/new/x.conf',
      'Reboot',
      'policy for /etc/new/* (edge) and policy for /etc/new/*.conf (edge)',
    ],
    [
      'a path of its own counts more than every pattern',
      [own('edge', { files: files({ '/etc/new/x': none, '/etc/new/x*': rebootAll }) })],
      '/etc/new/x',
      'None',
      'policy for /etc/new/x (edge)',
    ],
    [
      'a pattern leaves the default of a path: that takes the path itself, as in MCO',
      [own('edge', { files: files({ '/etc/containers/*': none, '/etc/containers/**': none }) })],
      '/etc/containers/policy.json',
      'Reload(crio.service)',
      'default policy for /etc/containers/policy.json',
    ],
    [
      'a path of its own replaces a default, as in MCO',
      [own('edge', { ...edge, files: files({ '/etc/containers/policy.json': none }) })],
      '/etc/containers/policy.json',
      'None',
      'policy for /etc/containers/policy.json (edge)',
    ],
    [
      'a pattern within the directory of a default counts more than that, as a longer path does in MCO',
      [own('edge', { files: files({ '/etc/containers/registries.d/*.yaml': drain }) })],
      '/etc/containers/registries.d/a.yaml',
      'Drain',
      'policy for /etc/containers/registries.d/*.yaml (edge)',
    ],
    [
      'what nothing matches',
      [own('edge', { files: files({ '/etc/new/*': none }) })],
      '/etc/other',
      'Reboot',
      'no policy covers it: Reboot',
    ],
  ])('%s', (_name, policies, path, actions, rule) => {
    expect(decide(specOf(policies, cluster), path, { tier: 'edge' })).toEqual([actions, rule]);
  });

  test('registries.conf keeps the safe rule under a pattern, and loses it by a policy of its own path', () => {
    const at = (policies: PoolDisruptionPolicy[]) =>
      decide(specOf(policies), '/etc/containers/registries.conf')[0];
    expect(at([own('all', { files: files({ '/etc/containers/*.conf': none }) })])).toBe(
      'Drain, Reload(crio.service)',
    );
    expect(at([own('all', { files: files({ '/etc/containers/registries.conf': none }) })])).toBe('None');
  });

  test('what a policy of the pool does not name stays as it is for the cluster', () => {
    const mirrors = (kind: 'ImageDigestMirrorSet' | 'ImageTagMirrorSet') => ({ kind, added: none });
    const spec = {
      nodeDisruptionPolicy: {
        files: files({ '/etc/a': drain }),
        units: [{ name: 'a.service', actions: drain }],
        sshkey: { actions: drain },
        imageMirrors: [mirrors('ImageDigestMirrorSet')],
      },
      shale: {
        nodeDisruptionPolicies: [
          own('first', { files: files({ '/etc/b': none, '/etc/b/*': none }) }),
          own('second', {
            files: files({ '/etc/c/*': none }),
            units: [{ name: 'b.service', actions: none }],
            imageMirrors: [mirrors('ImageTagMirrorSet')],
          }),
        ],
      },
    };
    const policies = specifiedPolicies(spec, { labels: {} }, settings);
    expect(policies.files?.map(({ path }) => path)).toEqual(expect.arrayContaining(['/etc/a', '/etc/b']));
    expect(policies.patterns?.map(({ path }) => path).toSorted()).toEqual(['/etc/b/*', '/etc/c/*']);
    expect(policies.units?.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['a.service', 'b.service']),
    );
    expect(policies.sshkey?.actions).toEqual(drain);
    expect(policies.imageMirrors?.map(({ kind }) => kind).toSorted()).toEqual([
      'ImageDigestMirrorSet',
      'ImageTagMirrorSet',
    ]);
  });

  test('units, SSH keys and mirror objects are replaced as a whole', () => {
    const spec = {
      nodeDisruptionPolicy: {
        units: [{ name: 'a.service', actions: drain }],
        sshkey: { actions: drain },
        imageMirrors: [{ kind: 'ImageDigestMirrorSet' as const, added: drain, removed: drain }],
      },
      shale: {
        nodeDisruptionPolicies: [
          own('edge', {
            ...edge,
            units: [{ name: 'a.service', actions: none }],
            sshkey: { actions: rebootAll },
            imageMirrors: [{ kind: 'ImageDigestMirrorSet', added: none }],
          }),
        ],
      },
    };
    const policies = specifiedPolicies(spec, { labels: { tier: 'edge' } }, settings);
    expect(policies.units?.find(({ name }) => name === 'a.service')).toEqual({
      name: 'a.service',
      actions: none,
      source: 'Admin',
      policy: 'edge',
    });
    expect(policies.sshkey).toEqual({ actions: rebootAll, source: 'Admin', policy: 'edge' });
    expect(policies.imageMirrors).toEqual([{ kind: 'ImageDigestMirrorSet', added: none, policy: 'edge' }]);
    const to = configOf({}, { units: unitsOf({ name: 'a.service' }) });
    const { actions } = decideActions({ from: emptyConfig, to, policies, layered: false });
    expect(formatActions(actions)).toBe('None');
  });
});

describe('what the operator records', () => {
  const spec = specOf([own('edge', { ...edge, files: files({ '/etc/app/*': none }) })]);
  const pools = [
    labelled('worker'),
    labelled('b', { tier: 'edge' }),
    labelled('a', { tier: 'edge' }),
    labelled('infra'),
  ];
  const cluster = effectivePolicies(spec.nodeDisruptionPolicy, settings);
  const recorded = poolPolicies(spec, pools, settings);
  const status: MachineConfigurationStatus = {
    nodeDisruptionPolicyStatus: { clusterPolicies: cluster },
    policyDigest: policyDigest(cluster),
    ...present({ poolPolicies: recorded }),
  };

  test('pools with equal policies together, those without policies of their own too', () => {
    expect(recorded?.map(({ pools: names }) => names)).toEqual([
      ['a', 'b'],
      ['infra', 'worker'],
    ]);
    expect(recorded?.[1]?.policyDigest).toBe(policyDigest(cluster));
    expect(summarisePools(spec, pools)).toBe('a: edge; b: edge');
  });

  test('nothing where no policy is a pool’s, so that no digest changes', () => {
    expect(poolPolicies({}, pools, settings)).toBeUndefined();
    expect(poolPolicies({ shale: {} }, pools, settings)).toBeUndefined();
    expect(summarisePools({}, pools)).toBeUndefined();
  });

  test('a pool that is not recorded has no policies until it is', () => {
    expect(policiesOfPool(status, 'a')?.policies.patterns).toHaveLength(1);
    expect(policiesOfPool(status, 'new')).toBeUndefined();
    const { poolPolicies: _, ...without } = status;
    expect(policiesOfPool(without, 'new')?.policyDigest).toBe(status.policyDigest);
    expect(policiesOfPool(undefined, 'a')).toBeUndefined();
    expect(policiesOfPool({ policyDigest: 'sha256:x' }, 'a')).toBeUndefined();
  });

  test('a digest finds the policies that have it, and no others', () => {
    const [ofEdge, ofWorker] = ['a', 'worker'].map((pool) => policiesOfPool(status, pool));
    expect(policiesOfDigest(status, ofEdge?.policyDigest)).toEqual(ofEdge?.policies);
    expect(policiesOfDigest(status, ofWorker?.policyDigest)).toEqual(cluster);
    expect(policiesOfDigest(status, `sha256:${'0'.repeat(64)}`)).toBeUndefined();
    expect(policiesOfDigest(status, undefined)).toBeUndefined();
    const forged = { ...status, poolPolicies: [{ policyDigest: 'sha256:x', pools: ['a'], policies: {} }] };
    expect(policiesOfDigest(forged, 'sha256:x')).toBeUndefined();
  });

  test('a policy that selects no pool is named', () => {
    expect(policiesWithoutPools(spec, pools)).toEqual([]);
    expect(policiesWithoutPools(spec, [labelled('worker')])).toEqual([
      'spec.shale.nodeDisruptionPolicies: edge selects no MachineConfigPool',
    ]);
    expect(policiesWithoutPools({}, pools)).toEqual([]);
  });
});

const anyAction = fc.constantFrom(none, drain, rebootAll, restart('a'), restart('b'));
const anyOwnPath = fc.constantFrom(
  '/etc/a',
  '/etc/a/b',
  '/etc/a/*',
  '/etc/a/**',
  '/etc/*/b',
  '/etc/a/b*',
  '/etc/**',
);
const anyOwn = fc.record({
  name: fc.constantFrom('x', 'y', 'z'),
  poolSelector: fc.constantFrom({}, edge.poolSelector, { matchLabels: { tier: 'core' } }),
  files: fc.array(fc.record({ path: anyOwnPath, actions: anyAction }), { maxLength: 4 }),
});
const anyTier = fc.constantFrom('edge', 'core', undefined);
const changedPath = fc.constantFrom(
  '/etc/a',
  '/etc/a/b',
  '/etc/a/c',
  '/etc/a/b/c',
  '/etc/x/b',
  '/etc/x',
  '/srv/a',
);

describe('properties', () => {
  test('policies that do not select a pool change nothing of its policies, nor of their digest', () => {
    fc.assert(
      fc.property(fc.array(anyOwn, { maxLength: 4 }), anyTier, (policies, tier) => {
        const labels = tier === undefined ? {} : { tier };
        const selected = selectedPolicies(specOf(policies), { labels });
        const [all, only] = [policies, [...selected]].map((each) =>
          specifiedPolicies(specOf(each), { labels }, settings),
        );
        expect(policyDigest(all ?? {})).toBe(policyDigest(only ?? {}));
        if (selected.length === 0) expect(all).toEqual(effectivePolicies({}, settings));
      }),
    );
  });

  test('policies that decide otherwise anywhere have another digest', () => {
    const lists = fc.array(anyOwn, { maxLength: 3 });
    fc.assert(
      fc.property(lists, lists, changedPath, (first, second, path) => {
        const [one, other] = [first, second].map(
          (each): ClusterPolicies => specifiedPolicies(specOf(each), { labels: { tier: 'edge' } }, settings),
        );
        const [a, b] = [first, second].map((each) => decide(specOf(each), path, { tier: 'edge' })[0]);
        if (a !== b) expect(policyDigest(one ?? {})).not.toBe(policyDigest(other ?? {}));
      }),
    );
  });

  test('a file that no selected policy matches reboots, whatever others say', () => {
    fc.assert(
      fc.property(fc.array(anyOwn, { maxLength: 4 }), (policies) => {
        expect(decide(specOf(policies), '/srv/a', { tier: 'edge' })[0]).toBe('Reboot');
      }),
    );
  });

  test('what decides is among the policies that match, and does no less than each that is as specific', () => {
    fc.assert(
      fc.property(fc.array(anyOwn, { minLength: 1, maxLength: 4 }), changedPath, (policies, path) => {
        const [actions, rule = ''] = decide(specOf(policies), path, { tier: 'edge' });
        const effective = specifiedPolicies(specOf(policies), { labels: { tier: 'edge' } }, settings);
        const named = [...(effective.files ?? []), ...(effective.patterns ?? [])].filter((each) =>
          rule.split(' and ').includes(`policy for ${each.path} (${each.policy})`),
        );
        if (named.some((each) => each.actions[0]?.type === 'Reboot')) expect(actions).toBe('Reboot');
        else if (named.some((each) => each.actions[0]?.type === 'Drain')) expect(actions).toContain('Drain');
      }),
    );
  });
});
