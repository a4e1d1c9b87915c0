/** The commands as processes, and a real registry without referrers API, to which reports are attached. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Digest } from '../../api/references.ts';
import { ImageDiffOutput, PlanOutput } from '../../cli/command-line/output-schemas.ts';
import { digestTag } from '../../image/artifact.ts';
import { parseReference } from '../../image/reference.ts';
import { attachArtifacts, listReferrers } from '../../image/referrers.ts';
import { createRegistryClient } from '../../image/registry/registry-client.ts';
import { signStatement } from '../../image/signature/sign-statement.ts';
import { startDockerRegistry } from '../../workshop/sandbox/docker-registry.ts';
import { deadline } from '../fixtures/patience.ts';
import { baseFile, pushLayers } from '../fixtures/registry/linked-base.ts';
import { newSigningKey } from '../fixtures/registry/registry-with-image.ts';
import { shale } from './shale-process.ts';

const signal = deadline(300_000);
const TRIVY = 'application/vnd.aquasec.trivy.report+json';

/** Two releases of a base image in a registry without referrers API, as Debian's docker-registry is. */
async function setUp() {
  const dir = await mkdtemp(path.join(tmpdir(), 'vulnerabilities-'));
  const registry = await startDockerRegistry({ dir });
  onTestFinished(async () => {
    await registry.stop();
    await rm(dir, { recursive: true });
  });
  const { host } = registry;
  const client = createRegistryClient({ plainHttp: new Set([host]) });
  const { tag: _, ...at } = parseReference(`${host}/os/base:1`);
  const push = async (tag: string, kernel: string, ...packages: readonly string[]) => {
    const name = `${host}/os/base:${tag}`;
    const status = packages.map(
      (each) => `Package: ${each}\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1\n\n`,
    );
    const layer = [
      baseFile('/var/lib/dpkg/status', status.join('')),
      baseFile(`/usr/lib/modules/${kernel}/vmlinuz`),
    ];
    const digest = await pushLayers(client, name, [layer], signal);
    return { name, digest };
  };
  const attach = async (digest: Digest, artifactType: string, report: unknown) => {
    const { bytes, mediaType } = await client.getManifest({ ...at, digest }, signal);
    const subject = { digest, mediaType, size: bytes.length };
    const artifact = { artifactType, content: Buffer.from(JSON.stringify(report)), annotations: {} };
    await attachArtifacts(client, at, { subject, artifacts: [artifact] }, signal);
  };
  const file = async (name: string, report: unknown) => {
    const at = path.join(dir, name);
    await writeFile(at, JSON.stringify(report));
    return at;
  };
  const flags = ['--plain-http', host];
  const diff = (from: string, to: string, ...args: readonly string[]) =>
    shale(['image', 'diff', from, to, ...flags, '--architecture', 'amd64', ...args]);
  const from = await push('41', '6.12.9', 'libssl3', 'telnet');
  const to = await push('42', '6.12.14', 'libssl3');
  return { dir, host, client, at, attach, file, diff, flags, from, to };
}

/** As Trivy writes it. */
function trivy(digest: string | undefined, ...ids: readonly (readonly [id: string, severity: string])[]) {
  return {
    SchemaVersion: 2,
    CreatedAt: '2026-03-01T00:00:00Z',
    Metadata: { RepoDigests: digest === undefined ? [] : [`registry.example.com/os/base@${digest}`] },
    Results: [
      {
        Class: 'os-pkgs',
        Vulnerabilities: ids.map(([VulnerabilityID, Severity]) => ({
          VulnerabilityID,
          Severity,
          PkgName: 'libssl3',
          InstalledVersion: '1',
          FixedVersion: '2',
        })),
      },
    ],
  };
}

const [OLD, NEW] = [
  [['CVE-2026-0001', 'CRITICAL'] as const, ['CVE-2026-0002', 'LOW'] as const],
  [['CVE-2026-0002', 'LOW'] as const, ['CVE-2026-0003', 'HIGH'] as const],
];
const SUMMARY = 'vulnerabilities: brings 1 high; fixes 1 critical';

describe('shale image diff', () => {
  test('without reports says that there are none, and for which image', async () => {
    const { diff, from, to, attach } = await setUp();
    const none = await diff(from.name, to.name);
    expect(none.stdout).toContain('\nvulnerabilities: unknown, no report for either image\n');
    expect(none.exitCode).toBe(1);
    await attach(to.digest, TRIVY, trivy(to.digest, ...NEW));
    const half = await diff(from.name, to.name, '-o', 'markdown');
    expect(half.stdout).toContain('- vulnerabilities: unknown, no report for the old image\n');
    expect(half.stdout).toContain(`- no report of vulnerabilities for ${from.name}\n`);
    const json = ImageDiffOutput.parse(JSON.parse((await diff(from.name, to.name, '-o', 'json')).stdout));
    expect(json.vulnerabilities).toMatchObject({ reports: { from: null, to: { tool: 'Trivy' } } });
    expect(json.vulnerabilities.brought).toBeUndefined();
  });

  test('with attached reports: what is brought and fixed, by severity', async () => {
    const { diff, from, to, attach } = await setUp();
    await attach(from.digest, TRIVY, trivy(from.digest, ...OLD));
    await attach(to.digest, TRIVY, trivy(undefined, ...NEW));
    const { stdout } = await diff(from.name, to.name);
    expect(stdout.split('\n').map((line) => line.replace(/ {2,}/g, '  '))).toEqual(
      expect.arrayContaining([
        'CHANGE  SEVERITY  VULNERABILITY  PACKAGES',
        'brought  high  CVE-2026-0003  libssl3 1 (fixed in 2)',
        'fixed  critical  CVE-2026-0001  libssl3 1 (fixed in 2)',
        SUMMARY,
      ]),
    );
    expect(stdout).toMatch(
      /reports: .*os\/base@sha256:.* \(Trivy, 2026-03-01T00:00:00Z; not verified\) and /,
    );
  });

  test('attached are VEX and an attestation of cosign, and what is of another image is not counted', async () => {
    const { diff, client, at, from, to, attach } = await setUp();
    const statement = {
      _type: 'https://in-toto.io/Statement/v0.1',
      predicateType: 'https://cosign.sigstore.dev/attestation/vuln/v1',
      subject: [{ name: 'base', digest: { sha256: from.digest.slice('sha256:'.length) } }],
      predicate: { scanner: { result: trivy(undefined, ...OLD) } },
    };
    const signed = {
      digest: from.digest,
      statement: Buffer.from(JSON.stringify(statement)),
      key: newSigningKey(),
    };
    await signStatement(client, at, { ...signed, predicateType: statement.predicateType }, signal);
    await attach(to.digest, TRIVY, trivy(to.digest, ...NEW));
    await attach(to.digest, 'application/sarif+json', { version: '2.1.0', runs: 7 });
    await attach(to.digest, 'application/vnd.in-toto+json', {
      predicateType: 'https://slsa.dev/provenance/v1',
    });
    await attach(to.digest, 'application/vnd.cyclonedx+json', { bomFormat: 'CycloneDX', specVersion: '1.6' });
    await attach(to.digest, 'application/vnd.openvex+json', {
      '@context': 'https://openvex.dev/ns/v0.2.0',
      statements: [
        {
          vulnerability: { name: 'CVE-2026-0003' },
          products: [{ '@id': 'pkg:oci/base' }],
          status: 'not_affected',
        },
      ],
    });
    // A newer one, which would be preferred, of another image.
    const other = { ...trivy(from.digest, ...OLD), CreatedAt: '2026-03-01T01:00:00Z' };
    await attach(to.digest, TRIVY, other);
    const { vulnerabilities } = ImageDiffOutput.parse(
      JSON.parse((await diff(from.name, to.name, '-o', 'json')).stdout),
    );
    expect(vulnerabilities).toMatchObject({ brought: [], fixed: [{ id: 'CVE-2026-0001' }] });
    expect(vulnerabilities.remarks).toEqual([
      expect.stringContaining(': runs: expected array'),
      expect.stringContaining(`is attached to ${to.name} and names another image: ignored`),
    ]);
  });

  test('files: by what they name, and what they are said to be about', async () => {
    const { diff, from, to, file } = await setUp();
    const [old, unnamed] = [
      await file('old.json', trivy(from.digest, ...OLD)),
      await file('new.json', trivy(undefined, ...NEW)),
    ];
    const given = (...files: readonly string[]) => files.flatMap((each) => ['--vulnerabilities', each]);
    const both = await diff(from.name, to.name, ...given(old, `${to.name}=${unnamed}`));
    expect(both.stdout).toContain(`\n${SUMMARY}\n`);
    const byDigest = await diff(from.name, to.name, ...given(old, `${to.digest}=${unnamed}`));
    expect(byDigest.stdout).toContain(`\n${SUMMARY}\n`);
    const alone = await diff(from.name, to.name, ...given(old, unnamed));
    expect(alone.stdout).toContain('vulnerabilities: unknown, no report for the new image');
    expect(alone.stdout).toContain(`${unnamed} names no image: give it as IMAGE=${unnamed}`);
    const wrong = await diff(from.name, to.name, ...given(`${to.name}=${old}`));
    expect([wrong.exitCode, wrong.stderr]).toEqual([
      ...[
        2,
        expect.stringContaining(
          `${old}: is of another image than ${to.name}; expected one that names ${to.digest}`,
        ),
      ],
    ]);
    const other = await file('other.json', trivy(`sha256:${'0'.repeat(64)}`, ...OLD));
    expect((await diff(from.name, to.name, ...given(other))).stderr).toContain(
      `warning: ${other} is about neither image: not used`,
    );
    const broken = await file('broken.json', { SchemaVersion: 2, Results: [{ Vulnerabilities: [{}] }] });
    const refused = await diff(from.name, to.name, ...given(broken));
    expect([refused.exitCode, refused.stderr]).toEqual([
      ...[
        2,
        expect.stringContaining(`${broken}: Results[0].Vulnerabilities[0].VulnerabilityID: expected string`),
      ],
    ]);
    const missing = await diff(from.name, to.name, ...given('none.json'));
    expect([missing.exitCode, missing.stderr]).toEqual([
      2,
      expect.stringContaining("none.json: can't be read"),
    ]);
  });

  test('a registry that lists something else under the tag of referrers is a remark', async () => {
    const { diff, client, at, from, to } = await setUp();
    const image = await client.getManifest({ ...at, digest: from.digest }, signal);
    await client.putManifest({ ...at, tag: digestTag(to.digest) }, image, signal);
    await expect(listReferrers(client, at, to.digest, signal)).rejects.toThrow(
      'expected a list of referrers',
    );
    const { stdout, exitCode } = await diff(from.name, to.name);
    expect(exitCode).toBe(1);
    expect(stdout).toContain(`reports attached to ${to.name} can't be read: `);
  });
});

describe('shale plan', () => {
  async function planned() {
    const world = await setUp();
    const { file, host, flags, from, to } = world;
    const config = (name: string, baseImage: string) =>
      file(`${name}.yaml`, {
        apiVersion: 'machineconfiguration.openshift.io/v1',
        kind: 'MachineOSConfig',
        metadata: { name: 'worker' },
        spec: {
          machineConfigPool: { name: 'worker' },
          imageBuilder: { imageBuilderType: 'Job' },
          baseImage,
          renderedImagePushSpec: `${host}/os/worker:latest`,
          renderedImagePushSecret: { name: 'push' },
        },
      });
    const [before, after] = [await config('before', from.name), await config('after', to.name)];
    const plan = (...args: readonly string[]) =>
      shale(['plan', '--from', 'examples', before, '-f', after, ...flags, ...args]);
    return { ...world, plan };
  }

  test('says what a new base image brings, as text, JSON and Markdown, and where there is no report', async () => {
    const { plan, attach, file, from, to } = await planned();
    expect((await plan()).stdout).not.toContain('vulnerabilities');
    expect((await plan('--packages')).stdout).toContain(
      '  vulnerabilities: unknown, no report for either image\n',
    );
    await attach(from.digest, TRIVY, trivy(from.digest, ...OLD));
    const report = ['--vulnerabilities', await file('new.json', trivy(to.digest, ...NEW))];
    const { stdout } = await plan(...report);
    expect(stdout).toContain(`  ${SUMMARY}\n`);
    expect(stdout).toContain('  vulnerabilities: brought high CVE-2026-0003: libssl3 1 (fixed in 2)\n');
    expect(stdout).not.toContain('base image: ');
    expect((await plan(...report, '-o', 'markdown')).stdout).toContain(`- ${SUMMARY}\n`);
    const json = PlanOutput.parse(JSON.parse((await plan(...report, '-o', 'json')).stdout));
    expect(json.find(({ pool }) => pool === 'worker')).toMatchObject({
      baseChange: { vulnerabilities: { brought: [{ id: 'CVE-2026-0003', severity: 'high' }] } },
    });
  });

  test.each<[string, readonly string[], number, string]>([
    ['a kernel', ['kernel'], 1, '--fail-on kernel: pool worker (6.12.9 -> 6.12.14)'],
    ['a package that goes', ['removed-package=telnet'], 1, '--fail-on removed-package=telnet: pool worker'],
    ['a package that stays', ['removed-package=libssl3'], 0, ''],
    ['a package that never was', ['removed-package=none'], 0, ''],
    [
      'a severity that is brought',
      ['severity=high'],
      1,
      '--fail-on severity=high: pool worker (1 high: CVE-2026-0003)',
    ],
    ['a worse one', ['severity=critical'], 0, ''],
    [
      'several: those that are met',
      ['severity=critical', 'kernel', 'severity=low', 'reboot'],
      1,
      '--fail-on kernel: pool worker (6.12.9 -> 6.12.14)\n  --fail-on severity=low: pool worker (1 high: CVE-2026-0003)\n  --fail-on reboot: pool worker',
    ],
    [
      'an unknown one',
      ['severity=severe'],
      2,
      'Expected one of live, reload, restart, drain, reboot, kernel',
    ],
    ['no name of a package', ['removed-package='], 2, 'Expected one of live'],
  ])('fails on %s', async (_what, conditions, code, message) => {
    const { plan, attach, from, to } = await planned();
    await attach(from.digest, TRIVY, trivy(from.digest, ...OLD));
    await attach(to.digest, TRIVY, trivy(to.digest, ...NEW));
    const { exitCode, stderr } = await plan(...conditions.flatMap((each) => ['--fail-on', each]));
    expect([exitCode, stderr]).toEqual([code, expect.stringContaining(message)]);
  });

  test('fails where what it is asked about is not known', async () => {
    const { plan, to } = await planned();
    const none = await plan('--fail-on', 'severity=critical');
    expect([none.exitCode, none.stderr]).toEqual([
      ...[
        1,
        expect.stringMatching(
          /--fail-on severity=critical: pool worker \(what it brings is not known: no report/,
        ),
      ],
    ]);
    expect(none.stderr).toContain(`no report of vulnerabilities for ${to.name}`);
  });
});
