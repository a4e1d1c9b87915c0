import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { SEVERITIES } from '../../api/vulnerabilities.ts';
import { digestOf } from '../digest.ts';
import { compareReports, severityCounts, vulnerabilitiesOf } from './compare-reports.ts';
import { type GivenReport, unusedReports, withGiven } from './given-reports.ts';
import type { ImageReports, ReportedImage } from './image-reports.ts';
import type { ScanFinding, VexStatement, VulnerabilityReport } from './report.ts';

const imageOf = (name: string): ReportedImage => ({
  name: `registry.example.com/os/${name}`,
  manifests: [digestOf(name), digestOf(`index of ${name}`)],
  config: digestOf(`config of ${name}`),
});
const [OLD, NEW] = [imageOf('old'), imageOf('new')];

const finding = (id: string, given: Partial<ScanFinding> = {}): ScanFinding => ({
  id,
  aliases: [],
  package: 'libssl3',
  version: '1',
  severity: 'high',
  ...given,
});
const scan = (
  findings: readonly ScanFinding[],
  given: Partial<VulnerabilityReport> = {},
): VulnerabilityReport => ({
  source: 'scan.json',
  format: 'Trivy',
  tool: 'Trivy 1',
  subjects: [],
  findings,
  statements: [],
  ...given,
});
const reports = (image: ReportedImage, ...all: readonly VulnerabilityReport[]): ImageReports => ({
  image,
  reports: all,
  remarks: [],
});
const ids = (all: readonly { readonly id: string }[] | undefined) => all?.map(({ id }) => id);
const compared = (before: readonly ScanFinding[], after: readonly ScanFinding[]) => {
  const { brought, fixed } = compareReports(reports(OLD, scan(before)), reports(NEW, scan(after)));
  return { brought: ids(brought), fixed: ids(fixed) };
};

describe('of two images', () => {
  test.each<[string, readonly ScanFinding[], readonly ScanFinding[], readonly string[], readonly string[]]>([
    ['nothing', [finding('CVE-1')], [finding('CVE-1')], [], []],
    ['one for another', [finding('CVE-1')], [finding('CVE-2')], ['CVE-2'], ['CVE-1']],
    ['a version that changes nothing', [finding('CVE-1')], [finding('CVE-1', { version: '2' })], [], []],
    [
      'a kernel, whose package has another name',
      [finding('CVE-1', { package: 'linux-image-6.12.9' })],
      [finding('CVE-1', { package: 'linux-image-6.12.14' })],
      [],
      [],
    ],
    [
      'one of two packages with the same',
      [finding('CVE-1', { package: 'a' }), finding('CVE-1', { package: 'b' })],
      [finding('CVE-1', { package: 'a' })],
      [],
      [],
    ],
    [
      'the name of GitHub for that of CVE',
      [finding('CVE-1')],
      [finding('GHSA-1', { aliases: ['CVE-1'] })],
      [],
      [],
    ],
    [
      'an advisory about several for one of them',
      [finding('ELSA-1', { aliases: ['CVE-1', 'CVE-2'] })],
      [finding('CVE-2'), finding('CVE-3')],
      ['CVE-3'],
      [],
    ],
    ['another rating', [finding('CVE-1', { severity: 'low' })], [finding('CVE-1')], [], []],
  ])('%s', (_what, before, after, brought, fixed) => {
    expect(compared(before, after)).toEqual({ brought, fixed });
  });

  const findings = fc.array(
    fc.record({
      id: fc.constantFrom('CVE-1', 'CVE-2', 'CVE-3', 'GHSA-1', 'GHSA-2', 'ELSA-1'),
      aliases: fc.uniqueArray(fc.constantFrom('CVE-1', 'CVE-2', 'CVE-3', 'GHSA-1'), { maxLength: 2 }),
      package: fc.constantFrom('a', 'b'),
      version: fc.constantFrom('1', '2'),
      severity: fc.constantFrom(...SEVERITIES),
    }),
    { maxLength: 6 },
  );
  const scans = fc.array(
    fc.record({
      findings,
      tool: fc.constantFrom('Trivy 1', 'Grype 2'),
      created: fc.constantFrom(undefined, '2026-03-01T00:00:00Z', '2026-03-09T00:00:00Z'),
      source: fc.constantFrom('a.json', 'b.json', 'c.json'),
    }),
    { minLength: 1, maxLength: 3 },
  );
  const sides = fc.tuple(scans, scans).map(([before, after]) => ({
    before: before.map((each, at) => scan(each.findings, { ...each, source: `${at} ${each.source}` })),
    after: after.map((each, at) => scan(each.findings, { ...each, source: `${at + 9} ${each.source}` })),
  }));

  test('one with itself is nothing', () => {
    fc.assert(
      fc.property(findings, (all) => {
        expect(compared(all, all)).toEqual({ brought: [], fixed: [] });
      }),
    );
  });

  test('exchanging them exchanges what is brought and what is fixed', () => {
    fc.assert(
      fc.property(sides, ({ before, after }) => {
        const there = compareReports(reports(OLD, ...before), reports(NEW, ...after));
        const back = compareReports(reports(OLD, ...after), reports(NEW, ...before));
        expect([there.brought, there.fixed]).toEqual([back.fixed, back.brought]);
      }),
    );
  });
});

test('a vulnerability is shown once, by its CVE, with its worst rating and all packages', () => {
  const all = vulnerabilitiesOf([
    finding('CVE-2', { severity: 'low' }),
    finding('GHSA-1', { aliases: ['CVE-1'], package: 'b', severity: 'medium', fixedVersion: '2' }),
    finding('CVE-1', { package: 'a', severity: 'unknown' }),
    finding('CVE-1', { package: 'a', severity: 'unknown' }),
  ]);
  expect(all).toEqual([
    {
      id: 'CVE-1',
      aliases: ['GHSA-1'],
      severity: 'medium',
      packages: [
        { name: 'a', version: '1' },
        { name: 'b', version: '1', fixedVersion: '2' },
      ],
    },
    { id: 'CVE-2', aliases: [], severity: 'low', packages: [{ name: 'libssl3', version: '1' }] },
  ]);
  expect(severityCounts(all)).toEqual({ medium: 1, low: 1 });
});

describe('which reports are compared', () => {
  const trivy = (created: string) => scan([], { source: `trivy ${created}`, created });
  const grype = (created: string) =>
    scan([], { source: `grype ${created}`, tool: 'Grype 1', format: 'Grype', created });
  const used = (before: readonly VulnerabilityReport[], after: readonly VulnerabilityReport[]) => {
    const { reports: both, remarks } = compareReports(reports(OLD, ...before), reports(NEW, ...after));
    return { from: both.from?.source, to: both.to?.source, remarks };
  };

  test('those of one tool, even where that of another is newer', () => {
    expect(used([trivy('2026-03-01')], [grype('2026-03-02'), trivy('2026-03-01')])).toEqual({
      from: 'trivy 2026-03-01',
      to: 'trivy 2026-03-01',
      remarks: [],
    });
  });

  test('the newest of one tool; that they are far apart is said', () => {
    const { to, remarks } = used([trivy('2026-03-01')], [trivy('2026-03-02'), trivy('2026-03-09')]);
    expect(to).toBe('trivy 2026-03-09');
    expect(remarks).toEqual([
      'the reports are 8 days apart, so what became known meanwhile counts as brought or fixed',
    ]);
  });

  test('those of two tools where there are no others, which is said', () => {
    expect(used([trivy('2026-03-01')], [grype('2026-03-01')]).remarks).toEqual([
      'the reports are of Trivy 1 and Grype 1, which may differ in what they find',
    ]);
  });

  test('without one nothing is claimed, and it is said which is missing and why', () => {
    const sbom = scan([], { source: 'sbom.json', notAScanBecause: 'nobody has scanned' });
    const diff = compareReports(reports(OLD, sbom), reports(NEW, scan([])));
    expect(diff).toEqual({
      reports: { from: null, to: { source: 'scan.json', tool: 'Trivy 1' } },
      remarks: [
        'no report of vulnerabilities for registry.example.com/os/old; sbom.json is no scan: nobody has scanned',
      ],
    });
    expect(compareReports(reports(OLD), reports(NEW)).remarks).toHaveLength(2);
  });
});

describe('what VEX says', () => {
  const says = (statement: Partial<VexStatement>): VexStatement => ({
    ids: ['CVE-1'],
    status: 'not_affected',
    packages: [],
    ...statement,
  });
  const vex = (...statements: readonly VexStatement[]) =>
    scan([], { source: 'vex.json', notAScanBecause: 'it is VEX and no scan', statements });
  const brought = (...statements: readonly VexStatement[]) => {
    const after = [
      scan([finding('GHSA-1', { aliases: ['CVE-1'], version: '1:1' })], { bom: 'urn:uuid:one' }),
    ];
    return compareReports(reports(OLD, scan([])), reports(NEW, ...after, vex(...statements)));
  };

  test.each<[string, readonly VexStatement[], readonly string[]]>([
    ['of the image', [says({})], []],
    ['of another vulnerability', [says({ ids: ['CVE-2'] })], ['CVE-1']],
    ['of its package', [says({ packages: [{ name: 'libssl3' }] })], []],
    ['of its package, without the epoch', [says({ packages: [{ name: 'libssl3', version: '1' }] })], []],
    ['of another version', [says({ packages: [{ name: 'libssl3', version: '2' }] })], ['CVE-1']],
    ['of another package', [says({ packages: [{ name: 'curl' }] })], ['CVE-1']],
    ['that it is present', [says({ status: 'affected' })], ['CVE-1']],
    ['later that it is present', [says({}), says({ status: 'affected' })], ['CVE-1']],
    ['by the digest of the image', [says({ image: { digest: digestOf('new') } })], []],
    ['by the name of the image', [says({ image: { repository: 'new' } })], []],
    ['of the document that is the scan', [says({ image: { bom: 'urn:uuid:one' } })], []],
  ])('%s', (_what, statements, expected) => {
    const diff = brought(...statements);
    expect(ids(diff.brought)).toEqual(expected);
    expect(diff.remarks).toEqual([]);
  });

  test.each<[string, VexStatement, string]>([
    ['digest', says({ image: { digest: digestOf('other') } }), `${digestOf('other')}, which is not`],
    ['name', says({ image: { repository: 'other' } }), 'an image other, which is not'],
    ['SBOM', says({ image: { bom: 'urn:uuid:two' } }), 'the SBOM urn:uuid:two, which is not the report of'],
  ])('about another product, by its %s, is ignored', (_what, statement, why) => {
    const diff = brought(statement);
    expect(ids(diff.brought)).toEqual(['CVE-1']);
    expect(diff.remarks).toEqual([expect.stringContaining(why)]);
  });
});

describe('a file', () => {
  const given = (image: string | undefined, ...subjects: VulnerabilityReport['subjects']): GivenReport => ({
    report: scan([], { subjects }),
    image,
  });
  const used = (each: GivenReport) => withGiven(reports(OLD), [each]);

  test.each<[string, GivenReport, boolean]>([
    ['names the image', given(undefined, [digestOf('old')]), true],
    ['names its index', given(undefined, [digestOf('index of old')]), true],
    ['names its configuration', given(undefined, [digestOf('config of old')]), true],
    ['names another image', given(undefined, [digestOf('new')]), false],
    [
      'names the image in the attestation alone',
      given(undefined, [digestOf('new')], [digestOf('old')]),
      false,
    ],
    ['names nothing, and is said to be of it', given(OLD.name, []), true],
    ['names nothing, and is said to be of its digest', given(digestOf('old')), true],
    [
      'names nothing, and is said to be of an image by its digest',
      given(`mirror/a@${digestOf('old')}`),
      true,
    ],
    ['names nothing, and is said to be of another', given(NEW.name), false],
  ])('that %s', (_what, each, isUsed) => {
    expect(used(each)).toMatchObject({ reports: isUsed ? [each.report] : [], remarks: [] });
  });

  test('that names nothing is not used, and it is said how to name it', () => {
    expect(used(given(undefined))).toMatchObject({
      reports: [],
      remarks: ['scan.json names no image: give it as IMAGE=scan.json'],
    });
    expect(unusedReports([given(undefined)], [OLD, NEW])).toEqual([]);
  });

  test('that is said to be of the image and names another is refused', () => {
    expect(() => used(given(OLD.name, [digestOf('new')]))).toThrow(
      `scan.json: is of another image than ${OLD.name}; expected one that names ${digestOf('old')}`,
    );
  });

  test('that is about no image is named', () => {
    expect(unusedReports([given(undefined, [digestOf('other')]), given('other')], [OLD, NEW])).toEqual([
      ...['scan.json', 'scan.json'],
    ]);
    expect(unusedReports([given(undefined, [digestOf('old')])], [OLD, NEW])).toEqual([]);
  });
});
