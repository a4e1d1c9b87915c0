import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import { type MachineConfigNode, MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { type MachineOSBuild, MachineOSBuilds } from '../../api/machine-os-build.ts';
import { MachineOSConfigs } from '../../api/machine-os-config.ts';
import type { SettingFields } from '../../api/pool-settings/table.ts';
import type { Digest } from '../../api/references.ts';
import { BaseVulnerabilities } from '../../api/vulnerabilities.ts';
import { parseReference } from '../../image/reference.ts';
import { attachArtifacts } from '../../image/referrers.ts';
import { createRegistryClient } from '../../image/registry/registry-client.ts';
import type { VulnerabilityDiff } from '../../image/vulnerabilities/compare-reports.ts';
import { BuildWorld } from '../../test/fixtures/build-world.ts';
import { MemoryCluster } from '../../test/fixtures/fleet/memory-cluster.ts';
import { aMachineConfigNode, aMachineOSConfig, aPool, image } from '../../test/fixtures/objects.ts';
import { deadline } from '../../test/fixtures/patience.ts';
import { pushBaseImage } from '../../test/fixtures/registry/base-image.ts';
import { MemoryRegistry } from '../../test/fixtures/registry/memory-registry.ts';
import {
  basePairs,
  isDue,
  recordedVulnerabilities,
  VulnerabilityRecorder,
} from './compare-vulnerabilities.ts';

const signal = deadline(60_000);
const on = (baseImage?: string, name = 'a'): MachineConfigNode =>
  aMachineConfigNode(name, {}, baseImage === undefined ? {} : { baseImage });
const built = (status: object): MachineOSBuild =>
  ({ metadata: { name: 'build' }, spec: {}, status: { ...status } }) as never;
const instance = (architecture: string, baseImage: string) => ({
  architecture,
  baseImage,
  image: image('f'),
});

describe('the base images that are compared', () => {
  const [one, two, three] = [image('1'), image('2'), image('3')];
  const arm = image('4');
  test.each<[string, MachineOSBuild, readonly MachineConfigNode[], readonly string[]]>([
    [
      'those that nodes run, each once',
      built({ baseImage: two }),
      [on(one), on(one, 'b'), on(three, 'c')],
      ['1 2', '3 2'],
    ],
    ['none where nodes run the same', built({ baseImage: two }), [on(two)], []],
    [
      'none where a mirror has the same',
      built({ baseImage: two }),
      [on(two.replace('registry', 'mirror'))],
      [],
    ],
    ['none of nodes that report none, or a tag', built({ baseImage: two }), [on(), on('r/a:1', 'b')], []],
    ['none for a build without one', built({}), [on(one)], []],
    [
      'those of an architecture, where an earlier build says which',
      built({ baseImage: two, instances: [instance('amd64', three), instance('arm64', arm)] }),
      [on(one)],
      ['1 4'],
    ],
    [
      'all of an index, where none says which',
      built({ baseImage: two, instances: [instance('amd64', three), instance('arm64', arm)] }),
      [on(image('9'))],
      ['9 3', '9 4'],
    ],
  ])('are %s', (_what, build, nodes, expected) => {
    const earlier = built({ instances: [instance('arm64', one)] });
    const digit = (pullspec: string) => pullspec.at(-1);
    expect(
      basePairs(build, nodes, [earlier, build]).map(({ from, to }) => `${digit(from)} ${digit(to)}`),
    ).toEqual(expected);
  });
});

test.each<[string, Partial<BaseVulnerabilities> | undefined, SettingFields['holds'], string, boolean]>([
  ['never read', undefined, {}, '', true],
  ['read', { result: 'Compared', brought: { critical: 1 } }, {}, '2027-01-01', false],
  ['without a report, in a pool without a limit', { result: 'NoReport' }, {}, '2027-01-01', false],
  [
    'without a report, in a pool that waits',
    { result: 'NoReport' },
    { vulnerabilities: 'high' },
    '00:06:00',
    true,
  ],
  ['the same, a moment ago', { result: 'NoReport' }, { vulnerabilities: 'high' }, '00:04:00', false],
  ['what holds the pool', { brought: { high: 1 } }, { vulnerabilities: 'high' }, '00:06:00', true],
  ['what does not', { brought: { low: 1 } }, { vulnerabilities: 'high' }, '2027-01-01', false],
])('reports are read of a pair that is %s', (_what, known, holds, at, expected) => {
  const entry =
    known && ({ result: 'Compared', checkedAt: '2026-06-01T00:00:00Z', ...known } as BaseVulnerabilities);
  const now = Date.parse(at.includes(':') ? `2026-06-01T${at}Z` : at || '2026-06-01');
  expect(isDue(entry, holds?.vulnerabilities, now)).toBe(expected);
});

describe('what a status has', () => {
  const pair = { from: image('1'), to: image('2') };
  const now = new Date('2026-06-01T00:00:00.123Z');
  const used = { source: 'r/a@sha256:1', tool: 'Trivy 1' };

  test('is limited, whatever reports say', () => {
    const vulnerability = (id: string) => ({
      id,
      aliases: [],
      severity: 'high' as const,
      packages: [{ name: 'p'.repeat(1000), version: '1' }],
    });
    const diff: VulnerabilityDiff = {
      reports: { from: used, to: used },
      brought: Array.from({ length: 99 }, (_, at) => vulnerability(`${at}${'x'.repeat(1000)}`)),
      fixed: [],
      remarks: ['r'.repeat(5000)],
    };
    const recorded = recordedVulnerabilities(pair, diff, now);
    expect(BaseVulnerabilities.parse(recorded)).toEqual(recorded);
    expect(recorded).toMatchObject({ brought: { high: 99 }, fixed: {}, checkedAt: '2026-06-01T00:00:00Z' });
    expect(recorded.worst).toHaveLength(20);
  });

  test('says which report is missing, or could not be read', () => {
    const none = { reports: { from: used, to: null }, remarks: ['no report for b'] };
    expect(recordedVulnerabilities(pair, none, now)).toMatchObject({
      result: 'NoReport',
      message: 'no report for b',
    });
    expect(recordedVulnerabilities(pair, { unread: 'timeout' }, now)).toMatchObject({
      result: 'NoReport',
      message: 'the reports could not be read: timeout',
    });
  });
});

describe('the recorder', () => {
  const trivy = (...ids: readonly string[]) => ({
    SchemaVersion: 2,
    Results: [
      {
        Class: 'os-pkgs',
        Vulnerabilities: ids.map((id) => ({ VulnerabilityID: id, PkgName: 'p', Severity: 'HIGH' })),
      },
    ],
  });

  async function setUp(holds: SettingFields['holds'] = {}) {
    const registry = await MemoryRegistry.start();
    const plainHttp = new Set([registry.host]);
    const registryClient = createRegistryClient({ plainHttp });
    const at = parseReference(`${registry.host}/os/base`);
    const push = (id: string) =>
      pushBaseImage(registryClient, `${registry.host}/os/base:${id}`, signal, 'amd64', id);
    const [old, next] = [await push('1'), await push('2')];
    const named = (digest: Digest) => `${registry.host}/os/base@${digest}`;
    const cluster = new MemoryCluster();
    const build = cluster.put(MachineOSBuilds, {
      apiVersion: 'v1',
      kind: 'MachineOSBuild',
      metadata: { name: 'build' },
      spec: { machineOSConfig: { name: 'worker' } } as MachineOSBuild['spec'],
      status: {
        baseImage: named(next),
        conditions: [
          { type: 'Succeeded', status: 'True', reason: 'a', message: 'a', lastTransitionTime: '' },
        ],
      },
    } as MachineOSBuild);
    const node = aMachineConfigNode('a', {}, { baseImage: named(old) });
    const listed = <T>(...all: readonly T[]) => ({ list: () => all });
    const clock = { now: Date.parse('2026-06-01T00:00:00Z') };
    const recorder = new VulnerabilityRecorder({
      client: cluster.client(),
      namespace: 'shale-system',
      plainHttp,
      architecture: 'amd64',
      signal,
      caches: {
        nodes: listed({ ...node, spec: { ...node.spec, pool: { name: 'worker' } } }),
        builds: listed(build),
        pools: { get: () => undefined },
        machineConfigs: { get: () => undefined },
      } as never,
      log: pino({ enabled: false }),
      now: () => new Date(clock.now),
    });
    const { renderedImagePushSecret: _, ...spec } = aMachineOSConfig('worker').spec;
    const config = { ...aMachineOSConfig('worker'), spec: spec as never };
    const current = () => cluster.get(MachineOSBuilds, 'build') ?? build;
    const pool = aPool('worker', { shale: { holds } });
    const record = () => recorder.record(config, current(), pool);
    const attach = async (digest: Digest, report: unknown) => {
      const { bytes, mediaType } = await registryClient.getManifest({ ...at, digest }, signal);
      const artifactType = 'application/vnd.aquasec.trivy.report+json';
      const artifact = { artifactType, content: Buffer.from(JSON.stringify(report)), annotations: {} };
      const subject = { digest, mediaType, size: bytes.length };
      await attachArtifacts(registryClient, at, { subject, artifacts: [artifact] }, signal);
    };
    return { registry, old, next, record, current, attach, clock };
  }

  test('writes what the new base image brings and fixes, once', async () => {
    const { old, next, record, current, attach, registry } = await setUp();
    await attach(old, trivy('CVE-2026-0001', 'CVE-2026-0002'));
    await attach(next, trivy('CVE-2026-0002', 'CVE-2026-0003', 'CVE-2026-0004'));
    expect(await record()).toBeUndefined();
    expect(current().status?.vulnerabilities).toMatchObject([
      {
        result: 'Compared',
        brought: { high: 2 },
        fixed: { high: 1 },
        worst: [{ id: 'CVE-2026-0003', severity: 'high', package: 'p' }, { id: 'CVE-2026-0004' }],
      },
    ]);
    expect(await registry.requestsOf(record)).toEqual([]);
  });

  test('writes that there is no report, and looks again where that holds the pool', async () => {
    const { old, next, record, current, attach, registry, clock } = await setUp({ vulnerabilities: 'high' });
    await attach(old, trivy());
    const again = await record();
    expect(again).toBe(300_000);
    expect(current().status?.vulnerabilities).toMatchObject([
      { result: 'NoReport', message: expect.stringContaining(next) },
    ]);
    expect(await registry.requestsOf(record)).toEqual([]);
    await attach(next, trivy('CVE-2026-0003'));
    clock.now += again ?? 0;
    expect(await record()).toBe(300_000);
    expect(current().status?.vulnerabilities).toMatchObject([{ result: 'Compared', brought: { high: 1 } }]);
  });

  test('records a registry that can’t be asked, and fails nothing', async () => {
    const { record, current, registry } = await setUp();
    registry.refuse = () => ({ status: 403, code: 'DENIED' });
    expect(await record()).toBeUndefined();
    expect(current().status?.vulnerabilities).toMatchObject([
      { result: 'NoReport', message: expect.stringContaining('the reports could not be read: ') },
    ]);
  });
});

test('the controller records it on the build of the pool', async () => {
  const world = new BuildWorld();
  await world.reconcile();
  const { build } = world;
  world.cluster.put(MachineOSBuilds, {
    ...build,
    status: {
      baseImage: image('b'),
      conditions: [{ type: 'Succeeded', status: 'True', reason: 'a', message: 'a', lastTransitionTime: '' }],
    },
  } as MachineOSBuild);
  const node = aMachineConfigNode('a', {}, { baseImage: `127.0.0.1:1/os/base@sha256:${'c'.repeat(64)}` });
  world.plainHttp.add('127.0.0.1:1');
  world.cluster.put(MachineConfigNodes, { ...node, spec: { ...node.spec, pool: { name: 'worker' } } });
  const pool = world.cluster.get(MachineConfigPools, 'worker');
  if (pool === undefined) throw new Error('no pool');
  world.cluster.put(MachineConfigPools, {
    ...pool,
    spec: { ...pool.spec, shale: { holds: { vulnerabilities: 'low' } } },
  });
  expect(world.cluster.get(MachineOSConfigs, 'worker')).toBeDefined();
  const result = await world.reconcile();
  expect(world.build.status?.vulnerabilities).toMatchObject([{ result: 'NoReport', to: image('b') }]);
  expect(result).toEqual({ kind: 'requeue', afterMs: 300_000 });
});
