import { generateKeyPairSync } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import { ClusterImagePolicies, type ClusterImagePolicy, ImagePolicies } from '../../api/image-policies.ts';
import { ImageDigestMirrorSets } from '../../api/image-sources.ts';
import { ConfigMaps } from '../../api/kubernetes.ts';
import { MachineConfigs } from '../../api/machine-config.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { MachineOSConfigs } from '../../api/machine-os-config.ts';
import {
  annotations,
  DEFAULT_NAMESPACE,
  OS_IMAGE_STREAMS_CONFIG_MAP,
  SIGNING_KEYS_CONFIG_MAP,
} from '../../api/names.ts';
import type { Kind, ObjectMeta } from '../../api/object.ts';
import { configVersions } from '../../machineconfig/config-versions.ts';
import { impossibleConfigs } from '../../machineconfig/testdata/impossible-configs.ts';
import { configOf, RenderedPools, ROLE } from '../../test/fixtures/fleet/rendered-pools.ts';
import { steppedOperator } from '../../test/fixtures/fleet/stepped-operator.ts';
import { aMachineConfigNode, aMachineOSConfig, aPool } from '../../test/fixtures/objects.ts';

const signal = new AbortController().signal;

let world: RenderedPools;

beforeEach(() => {
  world = new RenderedPools();
});

describe('rendering', () => {
  it('makes one config of what the pool selects, and the pool’s target names it and its sources', async () => {
    world.putConfig('60-issue', { '/etc/issue': 'b' });
    world.cluster.put(MachineConfigs, {
      ...configOf('70-other', { '/etc/other': 'c' }),
      metadata: { name: '70-other', labels: { [ROLE]: 'infra' } },
    });
    const name = await world.render();
    expect(name).toMatch(/^rendered-worker-[0-9a-f]{32}/);
    expect(world.filesOf(name)).toMatch(/\/etc\/motd/);
    expect(world.filesOf(name)).toMatch(/\/etc\/issue/);
    expect(world.filesOf(name)).not.toMatch(/\/etc\/other/);
    const { source = [] } = world.cluster.get(MachineConfigPools, 'worker')?.spec.configuration ?? {};
    expect(source.map((config) => config.name)).toEqual(['50-motd', '60-issue']);
    expect(world.degraded()).toBe('False Rendered');
  });

  it('never merges rendered configs, which a selector without a label of theirs matches', async () => {
    const pool = world.cluster.get(MachineConfigPools, 'worker');
    if (pool === undefined) throw new Error('there is no pool');
    const machineConfigSelector = {
      matchExpressions: [{ key: ROLE, operator: 'NotIn' as const, values: ['infra'] }],
    };
    world.cluster.put(MachineConfigPools, { ...pool, spec: { ...pool.spec, machineConfigSelector } });
    const first = await world.render();
    expect(await world.render()).toBe(first);
    world.putConfig('60-issue', { '/etc/issue': 'b' });
    const second = await world.render();
    expect(second).not.toBe(first);
    expect(await world.render()).toBe(second);
    const { source = [] } = world.cluster.get(MachineConfigPools, 'worker')?.spec.configuration ?? {};
    expect(source.map((config) => config.name)).toEqual(['50-motd', '60-issue']);
  });

  it('names the first MachineConfigs that are wrong, and counts the others: a message has a limit', async () => {
    for (let count = 0; count < 40; count += 1)
      world.putConfig(
        `60-wrong-${count}`,
        Object.fromEntries([...Array(20).keys()].map((n) => [`etc/${n}`, ''])),
      );
    await world.render();
    const message = world.degraded() ?? '';
    expect(message).toMatch(/MachineConfig 60-wrong-0: .*; and 35 more problems$/);
    expect(message.length).toBeLessThan(32_768);
  });

  it('gives a pool without MachineConfigs an empty target, and does not empty one that had some', async () => {
    const motd = world.cluster.get(MachineConfigs, '50-motd');
    world.cluster.remove(MachineConfigs, '50-motd');
    const empty = await world.render();
    expect([world.degraded(), world.cluster.get(MachineConfigPools, 'worker')?.spec.configuration]).toEqual([
      'False Rendered',
      { name: empty, source: [] },
    ]);
    if (motd !== undefined) world.cluster.put(MachineConfigs, motd);
    const full = await world.render();
    expect(full).not.toBe(empty);
    world.cluster.remove(MachineConfigs, '50-motd');
    expect(await world.render()).toBe(full);
    expect(world.degraded()).toMatch(
      /^True RenderFailed .*pool\/worker: selects no MachineConfig; .*keep one/,
    );
  });

  it('renders the image of the stream that the pool names, and keeps what it has while there is none', async () => {
    const before = await world.render();
    const pool = world.cluster.get(MachineConfigPools, 'worker');
    if (pool === undefined) throw new Error('there is no pool');
    world.cluster.put(MachineConfigPools, {
      ...pool,
      spec: { ...pool.spec, osImageStream: { name: 'next' } },
    });
    expect(await world.render()).toBe(before);
    expect(world.degraded()).toMatch(
      /^True RenderFailed .*"next" is not a key of the ConfigMap os-image-streams/,
    );
    const image = `registry.example.com/os@sha256:${'a'.repeat(64)}`;
    world.cluster.put(ConfigMaps, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: OS_IMAGE_STREAMS_CONFIG_MAP, namespace: DEFAULT_NAMESPACE },
      data: { next: image },
    });
    const after = await world.render();
    expect(after).not.toBe(before);
    expect(world.degraded()).toBe('False Rendered');
    const rendered = world.cluster.get(MachineConfigs, after ?? '');
    expect(rendered?.spec.osImageURL).toBe(image);
    expect(rendered?.metadata.annotations?.[annotations.osImageStream]).toBe('next');
  });

  it('renders signature policies, and reports those of namespaces that have no effect', async () => {
    const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString();
    const keyData = Buffer.from(pem).toString('base64');
    const policy = { rootOfTrust: { policyType: 'PublicKey' as const, publicKey: { keyData } } };
    const put = (kind: Kind<ClusterImagePolicy>, metadata: ObjectMeta, scope: string) =>
      world.cluster.put(kind, {
        apiVersion: 'config.openshift.io/v1',
        kind: kind.kind,
        metadata,
        spec: { scopes: [scope], policy },
      });
    put(ClusterImagePolicies, { name: 'signed' }, 'a.io');
    put(ImagePolicies, { name: 'own', namespace: 'team' }, 'a.io/x');
    const name = await world.render();
    const files = world.cluster.get(MachineConfigs, name ?? '')?.spec.config as {
      readonly storage: { readonly files: readonly { readonly path: string }[] };
    };
    expect(files.storage.files.map(({ path }) => path)).toEqual(
      expect.arrayContaining([
        '/etc/containers/policy.json',
        '/etc/containers/registries.d/sigstore-registries.yaml',
      ]),
    );
    const conditions = world.cluster.get(MachineConfigPools, 'worker')?.status?.conditions;
    expect(conditions?.find(({ type }) => type === 'RenderWarning')?.message).toMatch(
      /^ImagePolicy team\/own, spec\.scopes: "a\.io\/x" has no effect/,
    );
    const layered = aMachineOSConfig('worker');
    // The images of the pool itself: a signature that they can't have would keep the nodes at what they run.
    world.cluster.put(MachineOSConfigs, {
      ...layered,
      spec: { ...layered.spec, renderedImagePushSpec: 'a.io/os:latest' },
    });
    world.cluster.put(ConfigMaps, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: SIGNING_KEYS_CONFIG_MAP, namespace: DEFAULT_NAMESPACE },
      data: {},
    });
    expect(await world.render()).toBe(name);
    expect(world.degraded()).toMatch(
      /would refuse every image of pool worker, which a\.io\/os has, because signing/,
    );
  });

  it('reports what has no effect as a condition and an event, and that it is gone', async () => {
    const warning = () => {
      const conditions = world.cluster.get(MachineConfigPools, 'worker')?.status?.conditions ?? [];
      const found = conditions.find(({ type }) => type === 'RenderWarning');
      return found && `${found.status} ${found.reason} ${found.message}`.trim();
    };
    await world.render();
    expect(warning()).toBeUndefined();
    const without = {
      ignition: { version: '3.1.0', timeouts: { httpTotal: 5 } },
      storage: { filez: [], files: [{ path: '/etc/a', mod: 420, contents: { source: 'data:,' } }] },
      kernelArguments: { shouldExist: ['a'] },
    };
    world.putConfig('60-typo', {}, { config: without });
    await world.render();
    const message =
      'MachineConfig 60-typo: $.kernelArguments: has no effect in version 3.1.0; expected ignition.version 3.3.0 or later, ' +
      '$.storage.filez: is not a field of the spec and has no effect; expected no such key, ' +
      '$.storage.files[0].mod: is not a field of the spec and has no effect; expected no such key, ' +
      '$.ignition.timeouts: has no effect: only Ignition reads it, when it provisions a machine; expected no such section; files and units themselves';
    expect(warning()).toBe(`True WithoutEffect ${message}`);
    expect(world.degraded()).toBe('False Rendered');
    expect(world.operator.events).toContainEqual(['Warning', 'worker', 'RenderWarning', message]);
    world.putConfig('60-typo', { '/etc/a': 'a' });
    await world.render();
    expect(warning()).toBe('False AsExpected');
  });

  it('reports which versions of MachineConfigs the target is from, also of a change that it is the same after', async () => {
    const seen = () => world.cluster.get(MachineConfigPools, 'worker')?.status?.observedMachineConfigs;
    const now = () => configVersions(aPool('worker'), world.cluster.list(MachineConfigs));
    const name = await world.render();
    expect(seen()).toBe(now());
    world.putConfig('60-nothing', {});
    expect(seen()).not.toBe(now());
    expect(await world.render()).toBe(name);
    expect(seen()).toBe(now());
    world.putConfig('70-broken', { 'relative/path': 'x' });
    await world.render();
    expect([world.degraded(), seen()]).toEqual([expect.stringContaining('True RenderFailed'), now()]);
  });

  it('writes nothing when nothing has changed', async () => {
    await world.render();
    const before = world.cluster.writes;
    await world.render();
    expect(world.cluster.writes).toBe(before);
  });

  it('leaves a pool alone that is gone or being deleted', async () => {
    await world.render('gone');
    const pool = aPool('worker');
    const metadata = { ...pool.metadata, deletionTimestamp: '2026-06-01T00:00:00Z' };
    world.cluster.put(MachineConfigPools, { ...pool, metadata });
    expect(await world.render()).toBe('');
    expect(world.names()).toEqual(['50-motd']);
  });

  it('restores a rendered config that somebody has changed or deleted', async () => {
    const name = await world.render();
    const rendered = world.cluster.get(MachineConfigs, name);
    if (rendered === undefined) throw new Error('nothing was rendered');
    world.cluster.put(MachineConfigs, { ...rendered, spec: { ...rendered.spec, fips: true } });
    await world.render();
    expect(world.cluster.get(MachineConfigs, name)?.spec).toEqual(rendered.spec);
    world.cluster.remove(MachineConfigs, name);
    await world.render();
    expect(world.cluster.get(MachineConfigs, name)?.spec).toEqual(rendered.spec);
    expect(world.targetOf()).toBe(name);
  });

  it('goes on where an earlier process created the config and no more', async () => {
    const name = await world.render();
    const rendered = world.cluster.get(MachineConfigs, name);
    world.cluster.put(MachineConfigPools, aPool('worker'));
    // This operator's cache is empty: for all that it knows, the config does not exist.
    const late = steppedOperator(world.cluster, () => 0);
    world.cluster.remove(MachineConfigs, name);
    late.catchUp();
    if (rendered !== undefined) world.cluster.put(MachineConfigs, rendered);
    await late.rendering.reconcile('worker', signal);
    expect(world.targetOf()).toBe(name);
  });

  it('hands every other failure to its caller', async () => {
    world.operator.catchUp();
    world.cluster.trouble = () => 'unavailable';
    await expect(world.operator.rendering.reconcile('worker', signal)).rejects.toMatchObject({ status: 503 });
  });
});

describe('what can not be rendered', () => {
  it('changes nothing but the condition, which names the config; it is reported once', async () => {
    const name = await world.render();
    world.putConfig('60-broken', { 'not-absolute': 'x' });
    expect(await world.render()).toBe(name);
    expect(world.degraded()).toMatch(
      /^True RenderFailed Failed to render configuration for pool worker: MachineConfig 60-broken: /,
    );
    expect(world.operator.events).toEqual([
      ['Warning', 'worker', 'RenderDegraded', expect.stringMatching(/MachineConfig 60-broken/)],
    ]);
    await world.render();
    expect(world.operator.events).toHaveLength(1);
    world.cluster.remove(MachineConfigs, '60-broken');
    expect(await world.render()).toBe(name);
    expect(world.degraded()).toBe('False Rendered');
    expect(world.operator.events).toHaveLength(1);
  });

  it.each(impossibleConfigs)(
    'names both MachineConfigs of what no node can have: $what',
    async ({ configs }) => {
      const name = await world.render();
      for (const config of configs) world.cluster.put(MachineConfigs, config);
      expect(await world.render()).toBe(name);
      expect(world.degraded()).toMatch(/^True RenderFailed .*50-one/);
      expect(world.degraded()).toMatch(/^True RenderFailed .*51-other/);
      for (const { metadata } of configs) world.cluster.remove(MachineConfigs, metadata.name);
      expect(await world.render()).toBe(name);
      expect(world.degraded()).toBe('False Rendered');
    },
  );

  it('renders for standard mode what only an image can not carry', async () => {
    world.putConfig('60-whiteout', { '/etc/.wh.ssh/x': 'x', '/boot/x': 'x' });
    expect(world.filesOf(await world.render())).toContain('/etc/.wh.ssh/x');
    expect(world.degraded()).toBe('False Rendered');
  });

  it('reports other problems than before', async () => {
    world.putConfig('60-broken', { 'not-absolute': 'x' });
    await world.render();
    world.putConfig('60-broken', { 'not-absolute-either': 'x' });
    await world.render();
    expect(world.degraded()).toMatch(/not-absolute-either/);
    expect(world.operator.events).toHaveLength(2);
  });

  it.each([
    [10, 0],
    [11, 1],
    [13, 3],
  ])('of %i problems in one config names ten and counts the rest: %i', async (count, more) => {
    const files = Object.fromEntries(Array.from({ length: count }, (_, index) => [`relative-${index}`, 'x']));
    world.putConfig('60-broken', files);
    await world.render();
    const message = world.degraded() ?? '';
    expect(message.includes('more')).toBe(more > 0);
    if (more > 0) expect(message).toMatch(new RegExp(`, and ${more} more$`));
  });

  it('includes what running nodes can not take', async () => {
    const name = await world.render();
    world.completeRollout();
    world.putConfig('60-fips', {}, { fips: true });
    expect(await world.render()).toBe(name);
    expect(world.degraded()).toMatch(/can't be applied to running nodes: .*60-fips/);
    // A pool that runs nothing yet may start with it.
    const { status: _none, ...pool } = world.cluster.get(MachineConfigPools, 'worker') ?? aPool('worker');
    world.cluster.put(MachineConfigPools, pool);
    expect(await world.render()).not.toBe(name);
  });

  it('does not include what a pool without nodes has been given, so that it can be taken back', async () => {
    world.putConfig('60-fips', {}, { fips: true });
    const name = await world.render();
    world.completeRollout();
    const pool = world.cluster.get(MachineConfigPools, 'worker') ?? aPool('worker');
    world.cluster.put(MachineConfigPools, { ...pool, status: { ...pool.status, machineCount: 0 } });
    world.putConfig('60-fips', {}, { fips: false });
    expect(await world.render()).not.toBe(name);
    expect(world.degraded()).toBe('False Rendered');
  });
});

describe('the predicted transitions', () => {
  const transitionsOf = (name: string) => {
    const text =
      world.cluster.get(MachineConfigs, name)?.metadata.annotations?.[annotations.transitions] ?? 'null';
    return JSON.parse(text) as { summary: string } | null;
  };

  it('are on the config before the pool has it as its target', async () => {
    world.putNode('a', await world.render());
    world.putConfig('60-unit', { '/etc/unknown': 'x' });
    const order: string[] = [];
    world.cluster.onWrite = () => void order.push(world.targetOf());
    const before = world.targetOf();
    const next = await world.render();
    expect(transitionsOf(next)?.summary).toMatch(/^1 node: .*Reboot/);
    // The config is written while the pool still has its earlier target.
    expect(order[0]).toBe(before);
    expect(order.at(-1)).toBe(next);
  });

  it('count only the nodes of the pool, as they are when the config becomes the target', async () => {
    const first = await world.render();
    world.putNode('a', first);
    world.putNode('b', first);
    world.cluster.put(
      MachineConfigNodes,
      aMachineConfigNode(
        'elsewhere',
        { pool: { name: 'infra' } },
        { configVersion: { current: first, desired: first } },
      ),
    );
    world.putConfig('60-unit', { '/etc/unknown': 'x' });
    const second = await world.render();
    expect(transitionsOf(second)?.summary).toMatch(/^2 nodes: /);
    // The first one again, which was rendered when no node ran anything.
    world.putNode('a', second);
    world.cluster.remove(MachineConfigs, '60-unit');
    expect(await world.render()).toBe(first);
    expect(transitionsOf(first)?.summary).toMatch(/2 nodes|1 node.*1 node/);
  });

  it('are on the mirror objects that have a part in it, by pool', async () => {
    world.putMirrors('mirror-1.example.com/a');
    world.putNode('a', await world.render());
    world.putMirrors('mirror-2.example.com/a');
    const next = await world.render();
    const text = world.cluster.get(ImageDigestMirrorSets, 'mirrors')?.metadata.annotations?.[
      annotations.effect
    ];
    expect(JSON.parse(text ?? '{}')).toMatchObject({ pools: { worker: { config: next } } });
    const { metadata, ...others } = world.putMirrors('mirror-2.example.com/a');
    const spec = { imageDigestMirrors: [{ source: 'registry.example.com/b', mirrors: ['m.example.com/b'] }] };
    world.cluster.put(ImageDigestMirrorSets, { ...others, spec, metadata: { name: 'others' } });
    world.putNode('a', await world.render());
    world.putMirrors('mirror-3.example.com/a');
    await world.render();
    const annotated = world.cluster
      .list(ImageDigestMirrorSets)
      .filter((object) =>
        (object.metadata.annotations?.[annotations.effect] ?? '').includes(world.targetOf()),
      );
    expect(annotated.map((object) => object.metadata.name)).toEqual([metadata.name]);
  });
});
