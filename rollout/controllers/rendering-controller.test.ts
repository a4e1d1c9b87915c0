import { beforeEach, describe, expect, it } from 'vitest';
import { type ImageDigestMirrorSet, ImageDigestMirrorSets } from '../../api/image-sources.ts';
import { ConfigMaps, Nodes } from '../../api/kubernetes.ts';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { MachineOSBuilds } from '../../api/machine-os-build.ts';
import { annotations, DEFAULT_NAMESPACE, OS_IMAGE_STREAMS_CONFIG_MAP } from '../../api/names.ts';
import { configVersions } from '../../machineconfig/config-versions.ts';
import { MemoryCluster } from '../../test/fixtures/fleet/memory-cluster.ts';
import { type SteppedOperator, steppedOperator } from '../../test/fixtures/fleet/stepped-operator.ts';
import { aBuild, aMachineConfigNode, aNode, aPool } from '../../test/fixtures/objects.ts';

const signal = new AbortController().signal;
const ROLE = 'machineconfiguration.openshift.io/role';
const REGISTRIES = '99-worker-generated-registries';

let cluster: MemoryCluster;
let operator: SteppedOperator;

beforeEach(() => {
  cluster = new MemoryCluster();
  operator = steppedOperator(cluster, () => Date.parse('2026-06-01T00:00:00Z'));
  cluster.put(MachineConfigPools, aPool('worker'));
  putConfig('50-motd', { '/etc/motd': 'a' });
});

function configOf(name: string, files: Readonly<Record<string, string>>, more = {}): MachineConfig {
  const entries = Object.entries(files).map(([path, text]) => ({
    path,
    mode: 420,
    contents: { source: `data:,${text}` },
  }));
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name, labels: { [ROLE]: 'worker' } },
    spec: { config: { ignition: { version: '3.5.0' }, storage: { files: entries } }, ...more },
  };
}

function putConfig(name: string, files: Readonly<Record<string, string>>, more = {}): void {
  cluster.put(MachineConfigs, configOf(name, files, more));
}

function putMirrors(mirror: string): ImageDigestMirrorSet {
  return cluster.put(ImageDigestMirrorSets, {
    apiVersion: 'config.openshift.io/v1',
    kind: 'ImageDigestMirrorSet',
    metadata: { name: 'mirrors' },
    spec: { imageDigestMirrors: [{ source: 'registry.example.com/a', mirrors: [mirror] }] },
  } as ImageDigestMirrorSet);
}

/** Renders the pool from what the cluster has now. @returns the name of the config that is its target. */
async function render(pool = 'worker'): Promise<string> {
  operator.catchUp();
  expect(await operator.rendering.reconcile(pool, signal)).toEqual({ kind: 'done' });
  operator.catchUp();
  return targetOf(pool);
}

const targetOf = (pool = 'worker') => cluster.get(MachineConfigPools, pool)?.spec.configuration?.name ?? '';
const names = () =>
  cluster
    .list(MachineConfigs)
    .map(({ metadata }) => metadata.name)
    .toSorted();
const degraded = () => {
  const condition = cluster
    .get(MachineConfigPools, 'worker')
    ?.status?.conditions?.find(({ type }) => type === 'RenderDegraded');
  return condition && `${condition.status} ${condition.reason} ${condition.message}`.trim();
};
const filesOf = (name: string) => JSON.stringify(cluster.get(MachineConfigs, name)?.spec.config);

/** A node of the pool that runs a config. */
function putNode(name: string, config: string, more: Parameters<typeof aMachineConfigNode>[2] = {}): void {
  const status = { configVersion: { current: config, desired: config }, ...more };
  cluster.put(MachineConfigNodes, aMachineConfigNode(name, { configVersion: { desired: config } }, status));
}

/** Makes a config what every node runs, as the pool's status says once a rollout is over. */
function completeRollout(): void {
  const pool = cluster.get(MachineConfigPools, 'worker');
  if (pool?.spec.configuration === undefined) throw new Error('the pool has no target');
  cluster.put(MachineConfigPools, {
    ...pool,
    status: { ...pool.status, configuration: pool.spec.configuration },
  });
}

describe('rendering', () => {
  it('makes one config of what the pool selects, and the pool’s target names it and its sources', async () => {
    putConfig('60-issue', { '/etc/issue': 'b' });
    cluster.put(MachineConfigs, {
      ...configOf('70-other', { '/etc/other': 'c' }),
      metadata: { name: '70-other', labels: { [ROLE]: 'infra' } },
    });
    const name = await render();
    expect(name).toMatch(/^rendered-worker-[0-9a-f]{32}/);
    expect(filesOf(name)).toMatch(/\/etc\/motd/);
    expect(filesOf(name)).toMatch(/\/etc\/issue/);
    expect(filesOf(name)).not.toMatch(/\/etc\/other/);
    const { source = [] } = cluster.get(MachineConfigPools, 'worker')?.spec.configuration ?? {};
    expect(source.map((config) => config.name)).toEqual(['50-motd', '60-issue']);
    expect(degraded()).toBe('False Rendered');
  });

  it('gives a pool without MachineConfigs an empty target, and does not empty one that had some', async () => {
    const motd = cluster.get(MachineConfigs, '50-motd');
    cluster.remove(MachineConfigs, '50-motd');
    const empty = await render();
    expect([degraded(), cluster.get(MachineConfigPools, 'worker')?.spec.configuration]).toEqual([
      'False Rendered',
      { name: empty, source: [] },
    ]);
    if (motd !== undefined) cluster.put(MachineConfigs, motd);
    const full = await render();
    expect(full).not.toBe(empty);
    cluster.remove(MachineConfigs, '50-motd');
    expect(await render()).toBe(full);
    expect(degraded()).toMatch(/^True RenderFailed .*pool\/worker: selects no MachineConfig; .*keep one/);
  });

  it('renders the image of the stream that the pool names, and keeps what it has while there is none', async () => {
    const before = await render();
    const pool = cluster.get(MachineConfigPools, 'worker');
    if (pool === undefined) throw new Error('there is no pool');
    cluster.put(MachineConfigPools, { ...pool, spec: { ...pool.spec, osImageStream: { name: 'next' } } });
    expect(await render()).toBe(before);
    expect(degraded()).toMatch(/^True RenderFailed .*"next" is not a key of the ConfigMap os-image-streams/);
    const image = `registry.example.com/os@sha256:${'a'.repeat(64)}`;
    cluster.put(ConfigMaps, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: OS_IMAGE_STREAMS_CONFIG_MAP, namespace: DEFAULT_NAMESPACE },
      data: { next: image },
    });
    const after = await render();
    expect(after).not.toBe(before);
    expect(degraded()).toBe('False Rendered');
    const rendered = cluster.get(MachineConfigs, after ?? '');
    expect(rendered?.spec.osImageURL).toBe(image);
    expect(rendered?.metadata.annotations?.[annotations.osImageStream]).toBe('next');
  });

  it('reports what has no effect as a condition and an event, and that it is gone', async () => {
    const warning = () => {
      const conditions = cluster.get(MachineConfigPools, 'worker')?.status?.conditions ?? [];
      const found = conditions.find(({ type }) => type === 'RenderWarning');
      return found && `${found.status} ${found.reason} ${found.message}`.trim();
    };
    await render();
    expect(warning()).toBeUndefined();
    const without = {
      ignition: { version: '3.1.0', timeouts: { httpTotal: 5 } },
      storage: { filez: [], files: [{ path: '/etc/a', mod: 420, contents: { source: 'data:,' } }] },
      kernelArguments: { shouldExist: ['a'] },
    };
    putConfig('60-typo', {}, { config: without });
    await render();
    const message =
      'MachineConfig 60-typo: $.kernelArguments: has no effect in version 3.1.0; expected ignition.version 3.3.0 or later, ' +
      '$.storage.filez: is not a field of the spec and has no effect; expected no such key, ' +
      '$.storage.files[0].mod: is not a field of the spec and has no effect; expected no such key, ' +
      '$.ignition.timeouts: has no effect: only Ignition reads it, when it provisions a machine; expected no such section; files and units themselves';
    expect(warning()).toBe(`True WithoutEffect ${message}`);
    expect(degraded()).toBe('False Rendered');
    expect(operator.events).toContainEqual(['Warning', 'worker', 'RenderWarning', message]);
    putConfig('60-typo', { '/etc/a': 'a' });
    await render();
    expect(warning()).toBe('False AsExpected');
  });

  it('reports which versions of MachineConfigs the target is from, also of a change that it is the same after', async () => {
    const seen = () => cluster.get(MachineConfigPools, 'worker')?.status?.observedMachineConfigs;
    const now = () => configVersions(aPool('worker'), cluster.list(MachineConfigs));
    const name = await render();
    expect(seen()).toBe(now());
    putConfig('60-nothing', {});
    expect(seen()).not.toBe(now());
    expect(await render()).toBe(name);
    expect(seen()).toBe(now());
    putConfig('70-broken', { 'relative/path': 'x' });
    await render();
    expect([degraded(), seen()]).toEqual([expect.stringContaining('True RenderFailed'), now()]);
  });

  it('writes nothing when nothing has changed', async () => {
    await render();
    const before = cluster.writes;
    await render();
    expect(cluster.writes).toBe(before);
  });

  it('leaves a pool alone that is gone or being deleted', async () => {
    await render('gone');
    const pool = aPool('worker');
    const metadata = { ...pool.metadata, deletionTimestamp: '2026-06-01T00:00:00Z' };
    cluster.put(MachineConfigPools, { ...pool, metadata });
    expect(await render()).toBe('');
    expect(names()).toEqual(['50-motd']);
  });

  it('restores a rendered config that somebody has changed or deleted', async () => {
    const name = await render();
    const rendered = cluster.get(MachineConfigs, name);
    if (rendered === undefined) throw new Error('nothing was rendered');
    cluster.put(MachineConfigs, { ...rendered, spec: { ...rendered.spec, fips: true } });
    await render();
    expect(cluster.get(MachineConfigs, name)?.spec).toEqual(rendered.spec);
    cluster.remove(MachineConfigs, name);
    await render();
    expect(cluster.get(MachineConfigs, name)?.spec).toEqual(rendered.spec);
    expect(targetOf()).toBe(name);
  });

  it('goes on where an earlier process created the config and no more', async () => {
    const name = await render();
    const rendered = cluster.get(MachineConfigs, name);
    cluster.put(MachineConfigPools, aPool('worker'));
    // This operator's cache is empty: for all that it knows, the config does not exist.
    const late = steppedOperator(cluster, () => 0);
    cluster.remove(MachineConfigs, name);
    late.catchUp();
    if (rendered !== undefined) cluster.put(MachineConfigs, rendered);
    await late.rendering.reconcile('worker', signal);
    expect(targetOf()).toBe(name);
  });

  it('hands every other failure to its caller', async () => {
    operator.catchUp();
    cluster.trouble = () => 'unavailable';
    await expect(operator.rendering.reconcile('worker', signal)).rejects.toMatchObject({ status: 503 });
  });
});

describe('what can not be rendered', () => {
  it('changes nothing but the condition, which names the config; it is reported once', async () => {
    const name = await render();
    putConfig('60-broken', { 'not-absolute': 'x' });
    expect(await render()).toBe(name);
    expect(degraded()).toMatch(
      /^True RenderFailed Failed to render configuration for pool worker: MachineConfig 60-broken: /,
    );
    expect(operator.events).toEqual([
      ['Warning', 'worker', 'RenderDegraded', expect.stringMatching(/MachineConfig 60-broken/)],
    ]);
    await render();
    expect(operator.events).toHaveLength(1);
    cluster.remove(MachineConfigs, '60-broken');
    expect(await render()).toBe(name);
    expect(degraded()).toBe('False Rendered');
    expect(operator.events).toHaveLength(1);
  });

  it('reports other problems than before', async () => {
    putConfig('60-broken', { 'not-absolute': 'x' });
    await render();
    putConfig('60-broken', { 'not-absolute-either': 'x' });
    await render();
    expect(degraded()).toMatch(/not-absolute-either/);
    expect(operator.events).toHaveLength(2);
  });

  it.each([
    [10, 0],
    [11, 1],
    [13, 3],
  ])('of %i problems in one config names ten and counts the rest: %i', async (count, more) => {
    const files = Object.fromEntries(Array.from({ length: count }, (_, index) => [`relative-${index}`, 'x']));
    putConfig('60-broken', files);
    await render();
    const message = degraded() ?? '';
    expect(message.includes('more')).toBe(more > 0);
    if (more > 0) expect(message).toMatch(new RegExp(`, and ${more} more$`));
  });

  it('includes what running nodes can not take', async () => {
    const name = await render();
    completeRollout();
    putConfig('60-fips', {}, { fips: true });
    expect(await render()).toBe(name);
    expect(degraded()).toMatch(/can't be applied to running nodes: .*60-fips/);
    // A pool that runs nothing yet may start with it.
    const { status: _none, ...pool } = cluster.get(MachineConfigPools, 'worker') ?? aPool('worker');
    cluster.put(MachineConfigPools, pool);
    expect(await render()).not.toBe(name);
  });

  it('does not include what a pool without nodes has been given, so that it can be taken back', async () => {
    putConfig('60-fips', {}, { fips: true });
    const name = await render();
    completeRollout();
    const pool = cluster.get(MachineConfigPools, 'worker') ?? aPool('worker');
    cluster.put(MachineConfigPools, { ...pool, status: { ...pool.status, machineCount: 0 } });
    putConfig('60-fips', {}, { fips: false });
    expect(await render()).not.toBe(name);
    expect(degraded()).toBe('False Rendered');
  });
});

describe('the predicted transitions', () => {
  const transitionsOf = (name: string) => {
    const text = cluster.get(MachineConfigs, name)?.metadata.annotations?.[annotations.transitions] ?? 'null';
    return JSON.parse(text) as { summary: string } | null;
  };

  it('are on the config before the pool has it as its target', async () => {
    putNode('a', await render());
    putConfig('60-unit', { '/etc/unknown': 'x' });
    const order: string[] = [];
    cluster.onWrite = () => void order.push(targetOf());
    const before = targetOf();
    const next = await render();
    expect(transitionsOf(next)?.summary).toMatch(/^1 node: .*Reboot/);
    // The config is written while the pool still has its earlier target.
    expect(order[0]).toBe(before);
    expect(order.at(-1)).toBe(next);
  });

  it('count only the nodes of the pool, as they are when the config becomes the target', async () => {
    const first = await render();
    putNode('a', first);
    putNode('b', first);
    cluster.put(
      MachineConfigNodes,
      aMachineConfigNode(
        'elsewhere',
        { pool: { name: 'infra' } },
        { configVersion: { current: first, desired: first } },
      ),
    );
    putConfig('60-unit', { '/etc/unknown': 'x' });
    const second = await render();
    expect(transitionsOf(second)?.summary).toMatch(/^2 nodes: /);
    // The first one again, which was rendered when no node ran anything.
    putNode('a', second);
    cluster.remove(MachineConfigs, '60-unit');
    expect(await render()).toBe(first);
    expect(transitionsOf(first)?.summary).toMatch(/2 nodes|1 node.*1 node/);
  });

  it('are on the mirror objects that have a part in it, by pool', async () => {
    putMirrors('mirror-1.example.com/a');
    putNode('a', await render());
    putMirrors('mirror-2.example.com/a');
    const next = await render();
    const text = cluster.get(ImageDigestMirrorSets, 'mirrors')?.metadata.annotations?.[annotations.effect];
    expect(JSON.parse(text ?? '{}')).toMatchObject({ pools: { worker: { config: next } } });
    const { metadata, ...others } = putMirrors('mirror-2.example.com/a');
    const spec = { imageDigestMirrors: [{ source: 'registry.example.com/b', mirrors: ['m.example.com/b'] }] };
    cluster.put(ImageDigestMirrorSets, { ...others, spec, metadata: { name: 'others' } });
    putNode('a', await render());
    putMirrors('mirror-3.example.com/a');
    await render();
    const annotated = cluster
      .list(ImageDigestMirrorSets)
      .filter((object) => (object.metadata.annotations?.[annotations.effect] ?? '').includes(targetOf()));
    expect(annotated.map((object) => object.metadata.name)).toEqual([metadata.name]);
  });
});

describe('mirrors', () => {
  it('are a generated MachineConfig of the pool, which follows them and goes with them', async () => {
    const without = await render();
    putMirrors('mirror-1.example.com/a');
    const first = await render();
    expect(first).not.toBe(without);
    const { source = [] } = cluster.get(MachineConfigPools, 'worker')?.spec.configuration ?? {};
    expect(source.map(({ name }) => name)).toContain(REGISTRIES);
    const generated = filesOf(REGISTRIES);
    putMirrors('mirror-2.example.com/a');
    expect(await render()).not.toBe(first);
    expect(filesOf(REGISTRIES)).not.toBe(generated);
    cluster.remove(ImageDigestMirrorSets, 'mirrors');
    expect(await render()).toBe(without);
    expect(names()).not.toContain(REGISTRIES);
  });

  it('never delete an admin’s MachineConfig of that name', async () => {
    putConfig(REGISTRIES, { '/etc/mine': 'x' });
    const name = await render();
    expect(names()).toContain(REGISTRIES);
    expect(filesOf(name)).toMatch(/\/etc\/mine/);
  });

  it('are rendered once for a custom pool, whose worker config is written by another pass', async () => {
    cluster.put(
      MachineConfigPools,
      aPool('infra', {
        machineConfigSelector: { matchExpressions: [{ key: ROLE, operator: 'Exists' }] },
      } as never),
    );
    putMirrors('mirror-1.example.com/a');
    const early = await render('infra');
    await render('worker');
    expect(await render('infra')).toBe(early);
  });

  it('that contradict each other are reported, and nothing is rendered', async () => {
    const name = await render();
    cluster.put(ImageDigestMirrorSets, {
      ...putMirrors('m.example.com/a'),
      metadata: { name: 'others' },
      spec: {
        imageDigestMirrors: [
          { source: 'registry.example.com/a', mirrors: [], mirrorSourcePolicy: 'NeverContactSource' },
          { source: 'registry.example.com/a', mirrors: [], mirrorSourcePolicy: 'AllowContactingSource' },
        ],
      },
    } as ImageDigestMirrorSet);
    expect(await render()).toBe(name);
    expect(degraded()).toMatch(/^True RenderFailed/);
  });
});

describe('rendered configs that nobody uses', () => {
  /** Renders as many further configs, each newer than the one before. */
  async function renderMore(count: number, from = 0): Promise<string[]> {
    const rendered: string[] = [];
    for (let index = from; index < from + count; index += 1) {
      putConfig('50-motd', { '/etc/motd': `text-${index}` });
      rendered.push(await render());
      const object = cluster.get(MachineConfigs, rendered.at(-1) ?? '');
      if (object === undefined) throw new Error('nothing was rendered');
      const creationTimestamp = new Date(Date.UTC(2026, 0, 1, 0, 0, index)).toISOString();
      cluster.put(MachineConfigs, { ...object, metadata: { ...object.metadata, creationTimestamp } });
    }
    operator.catchUp();
    return rendered;
  }

  const left = (rendered: readonly string[]) => rendered.filter((name) => names().includes(name));

  it('are kept for rollbacks, the newest five beside the target', async () => {
    const rendered = await renderMore(8);
    await render();
    expect(left(rendered)).toEqual(rendered.slice(-6));
  });

  it.each<[string, (name: string) => void]>([
    ['a node runs', (name) => putNode('a', name)],
    [
      'a node is to run',
      (name) =>
        void cluster.put(MachineConfigNodes, aMachineConfigNode('a', { configVersion: { desired: name } })),
    ],
    [
      'a node has staged',
      (name) =>
        putNode('a', 'x', { plan: { config: name, staged: true, actions: [], causes: [], source: '' } }),
    ],
    ['was built', (name) => void cluster.put(MachineOSBuilds, aBuild('b', name))],
    ['every node of the pool ran last', () => completeRollout()],
    [
      'a node was provisioned with it',
      (name) => {
        const metadata = { name: 'a', annotations: { [annotations.provisionedConfig]: name } };
        cluster.put(Nodes, aNode('a', { metadata }));
      },
    ],
  ])('are kept beyond that where %s', async (_what, use) => {
    const [first = ''] = await renderMore(1);
    use(first);
    await renderMore(8, 1);
    await render();
    expect(names()).toContain(first);
  });

  it('of another pool are left to that pool', async () => {
    cluster.put(MachineConfigPools, aPool('infra'));
    cluster.put(MachineConfigs, {
      ...configOf('50-infra', { '/etc/infra': 'x' }),
      metadata: { name: '50-infra', labels: { [ROLE]: 'infra' } },
    });
    const other = await render('infra');
    const pool = cluster.get(MachineConfigPools, 'infra');
    if (pool !== undefined) cluster.put(MachineConfigPools, { ...pool, spec: aPool('infra').spec });
    await renderMore(8);
    await render();
    expect(names()).toContain(other);
  });
});
