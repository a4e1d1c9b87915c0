import { expect, onTestFinished, test } from 'vitest';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import { parseReference } from '../../image/reference.ts';
import { attachArtifacts } from '../../image/referrers.ts';
import { createRegistryClient } from '../../image/registry/registry-client.ts';
import { compareImages } from '../../image/vulnerabilities/compare-images.ts';
import { targetBases } from '../../rollout/gates/vulnerabilities.ts';
import { delayStarts } from '../../rollout/pools/delay-starts.ts';
import type { PoolTarget } from '../../rollout/pools/pool-target.ts';
import { aMachineConfigNode, aNode, aState, image, REBOOT, someSettings } from '../fixtures/objects.ts';
import { deadline } from '../fixtures/patience.ts';
import { anObservation } from '../fixtures/pool-observed.ts';
import { pushBaseImage } from '../fixtures/registry/base-image.ts';
import { MemoryRegistry } from '../fixtures/registry/memory-registry.ts';

/** What whoever may push to the repository of a base image can do by reports that they attach to it. */

const signal = deadline(120_000);
const TRIVY = 'application/vnd.aquasec.trivy.report+json';
const trivy = (id: string, digest?: string) => ({
  SchemaVersion: 2,
  CreatedAt: '2026-03-01T00:00:00Z',
  Metadata: { RepoDigests: digest === undefined ? [] : [`r/a@${digest}`] },
  Results: [{ Class: 'os-pkgs', Vulnerabilities: [{ VulnerabilityID: id, PkgName: 'p', Severity: 'HIGH' }] }],
});

async function setUp() {
  const registry = await MemoryRegistry.start();
  onTestFinished(() => registry.stop());
  const client = createRegistryClient({ plainHttp: new Set([registry.host]) });
  const at = parseReference(`${registry.host}/os/base`);
  const push = async (id: string) => {
    const name = `${registry.host}/os/base:${id}`;
    const digest = await pushBaseImage(client, name, signal, 'amd64', id);
    return { name, digest, reference: parseReference(name) };
  };
  const [old, next] = [await push('1'), await push('2')];
  const attach = async (to: typeof old, artifactType: string, ...contents: readonly Uint8Array[]) => {
    const { bytes, mediaType } = await client.getManifest({ ...at, digest: to.digest }, signal);
    const artifacts = contents.map((content) => ({ artifactType, content, annotations: {} }));
    await attachArtifacts(
      client,
      at,
      { subject: { digest: to.digest, mediaType, size: bytes.length }, artifacts },
      signal,
    );
  };
  const json = (value: unknown) => Buffer.from(JSON.stringify(value));
  const compare = async () =>
    (await compareImages(client, [old, next], { architecture: 'amd64' }, signal)).diff;
  return { registry, old, next, attach, json, compare };
}

test('the report of another image, and VEX about another, hide nothing', async () => {
  const { old, next, attach, json, compare } = await setUp();
  await attach(old, TRIVY, json(trivy('CVE-2026-0001')));
  await attach(next, TRIVY, json(trivy('CVE-2026-0002')));
  const clean = { ...trivy('CVE-2026-0001', old.digest), CreatedAt: '2026-03-01T01:00:00Z' };
  await attach(next, TRIVY, json(clean));
  const statement = {
    vulnerability: 'CVE-2026-0002',
    status: 'not_affected',
    products: [{ '@id': 'pkg:oci/other' }],
  };
  await attach(
    next,
    'application/vnd.openvex+json',
    json({ '@context': 'https://openvex.dev/ns/v0.2.0', statements: [statement] }),
  );
  const { brought, remarks } = await compare();
  expect(brought?.map(({ id }) => id)).toEqual(['CVE-2026-0002']);
  expect(remarks).toEqual([
    expect.stringContaining('names another image: ignored'),
    expect.stringContaining('statements about an image other'),
  ]);
});

test('large, nested and many reports are not read, and the others are', async () => {
  const { registry, old, next, attach, json, compare } = await setUp();
  await attach(old, TRIVY, json(trivy('CVE-2026-0001')));
  await attach(next, TRIVY, json(trivy('CVE-2026-0002')));
  const large = Buffer.alloc(33 * 1024 * 1024, ' ');
  await attach(next, TRIVY, large, Buffer.from(`${'['.repeat(1_000_000)}`));
  const { brought, remarks } = await compare();
  expect(brought?.map(({ id }) => id)).toEqual(['CVE-2026-0002']);
  expect(remarks).toEqual([
    expect.stringContaining('more than the limit of 33554432'),
    expect.stringContaining('more than 100 lists and objects within one another'),
  ]);
  await attach(next, TRIVY, ...Array.from({ length: 100 }, (_, at) => json(trivy(`CVE-2026-${1000 + at}`))));
  const requests = await registry.requestsOf(compare);
  expect(requests.filter((line) => line.includes('/blobs/')).length).toBeLessThan(70);
});

test('ids have no characters that steer a terminal or forge a line', async () => {
  const { old, next, attach, json, compare } = await setUp();
  await attach(old, TRIVY, json(trivy('CVE-2026-0001')));
  await attach(next, TRIVY, json(trivy('CVE-2026-0002\n\u001B[2J\u202E')));
  expect((await compare()).brought?.[0]?.id).toBe('CVE-2026-0002\\n\\u001b[2J\\u202e');
});

test('what a report says delays starts, and keeps no node from a rollback', () => {
  const [from, to, target] = [image('1'), image('2'), image('3')];
  const brings = {
    from,
    to,
    result: 'Compared',
    message: '',
    checkedAt: '',
    brought: { critical: 9 },
  } as const;
  const build = {
    status: {
      digestedImagePushSpec: target,
      baseImage: to,
      vulnerabilities: [brings],
      conditions: [{ type: 'Succeeded', status: 'True' }],
    },
  } as unknown as MachineOSBuild;
  const layered: PoolTarget = {
    kind: 'layered',
    target: { config: 'rendered-2', image: target },
    build: 'b',
    sameContent: new Set(),
  };
  const waits = (goal: PoolTarget) => {
    const states = [aState('a', { progress: { kind: 'staged', actions: REBOOT } })];
    const observation = anObservation({
      settings: someSettings({ holds: { vulnerabilities: 'low' } }),
      target: goal,
      targetBases: targetBases([build], target),
      nodes: [
        {
          node: aNode('a'),
          machineConfigNode: aMachineConfigNode('a', {}, { baseImage: from }),
          lease: { by: 'nobody' },
          inMaintenance: false,
          machineDeleting: false,
        },
      ],
    });
    const context = {
      ...observation,
      states,
      settled: 0,
      halt: { kind: 'none' as const },
      now: 0,
    };
    return delayStarts([{ name: 'a', level: 'Disrupt' }], context).waits.map(({ reason }) => reason);
  };
  expect(waits(layered)).toEqual(['VulnerabilitiesBrought']);
  const back = { config: 'rendered-1', image: from };
  expect(
    waits({ kind: 'rolled-back', target: back, sameContent: new Set(), why: '', ownTarget: layered }),
  ).toEqual([]);
});
