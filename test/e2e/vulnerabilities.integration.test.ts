/** The builder as a process beside a real API server and registry: what it records of reports, which the schema admits. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import type { Digest } from '../../api/references.ts';
import { parseReference } from '../../image/reference.ts';
import { attachArtifacts } from '../../image/referrers.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { pushBaseImage } from '../fixtures/registry/base-image.ts';
import { type BuilderUnderTest, has, startBuilderUnderTest } from './builder-under-test.ts';

let under: BuilderUnderTest;
let built: Promise<void>;
const stop = new AbortController();
const signal = deadline(300_000);

beforeAll(async () => {
  under = await startBuilderUnderTest(signal);
  await under.createSecret('push', under.auths('secret'));
  built = under.runBuilder(stop.signal);
}, patience(60_000));
afterAll(async () => {
  stop.abort();
  await built;
  await under.stop();
});

const trivy = (...ids: readonly string[]) => ({
  SchemaVersion: 2,
  Results: [
    {
      Class: 'os-pkgs',
      Vulnerabilities: ids.map((id) => ({ VulnerabilityID: id, PkgName: 'libssl3', Severity: 'CRITICAL' })),
    },
  ],
});

async function attach(digest: Digest, report: unknown): Promise<void> {
  const client = under.registryClient();
  const at = parseReference(`${under.registry.host}/os/stock`);
  const { bytes, mediaType } = await client.getManifest({ ...at, digest }, signal);
  const artifactType = 'application/vnd.aquasec.trivy.report+json';
  const artifact = { artifactType, content: Buffer.from(JSON.stringify(report)), annotations: {} };
  const subject = { digest, mediaType, size: bytes.length };
  await attachArtifacts(client, at, { subject, artifacts: [artifact] }, signal);
}

test('a build has what its base image brings to a node of the pool', {
  timeout: patience(120_000),
}, async () => {
  const { client } = under.cluster;
  const stock = `${under.registry.host}/os/stock`;
  const old = await pushBaseImage(under.registryClient(), `${stock}:0`, signal, 'amd64', 'old');
  await attach(old, trivy('CVE-2026-0001'));
  const { digest } = parseReference(under.base);
  await attach(digest ?? old, trivy('CVE-2026-0002', 'CVE-2026-0003'));
  await under.layerPool('vuln', { secret: 'push' });
  await under.buildOf('vuln', has('Succeeded'));
  const spec = {
    node: { name: 'vuln-0' },
    pool: { name: 'vuln' },
    configVersion: { desired: 'rendered-vuln' },
  };
  const kind = { apiVersion: 'machineconfiguration.openshift.io/v1', kind: 'MachineConfigNode' };
  const node = await client.create(
    MachineConfigNodes,
    { ...kind, metadata: { name: 'vuln-0' }, spec },
    { signal },
  );
  const running = { mode: 'Layered' as const, baseImage: `${stock}@${old}` };
  await client.replaceStatus(MachineConfigNodes, { ...node, status: running }, { signal });
  const { status } = await under.buildOf(
    'vuln',
    (build) => build.status?.vulnerabilities !== undefined,
    20_000,
  );
  expect(status?.vulnerabilities).toEqual([
    {
      from: `${stock}@${old}`,
      to: under.base,
      result: 'Compared',
      message: expect.stringMatching(/^reports of Trivy \(.*\) and Trivy \(.*\), not verified$/),
      checkedAt: expect.any(String),
      brought: { critical: 2 },
      fixed: { critical: 1 },
      worst: [
        { id: 'CVE-2026-0002', severity: 'critical', package: 'libssl3' },
        { id: 'CVE-2026-0003', severity: 'critical', package: 'libssl3' },
      ],
    },
  ]);
});
