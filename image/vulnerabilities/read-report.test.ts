import { describe, expect, test } from 'vitest';
import { MAX_REPORT_BYTES, readReport } from './read-report.ts';
import type { ScanFinding } from './report.ts';

const DIGEST = `sha256:${'a'.repeat(64)}`;
const OTHER = `sha256:${'b'.repeat(64)}`;

const read = (json: unknown) => readReport(Buffer.from(JSON.stringify(json)), 'scan.json');

/** `id package version -> fixed severity` of each. */
function shown(findings: readonly ScanFinding[]): readonly string[] {
  return findings.map(
    ({ id, package: name, version, fixedVersion, severity }) =>
      `${id} ${name} ${version}${fixedVersion === undefined ? '' : ` -> ${fixedVersion}`} ${severity}`,
  );
}

describe('of Trivy', () => {
  const trivy = (vulnerability: object, others: object = {}) => ({
    SchemaVersion: 2,
    ArtifactName: 'registry.example.com/os/base:42',
    Results: [{ Target: 'base', Class: 'os-pkgs', Type: 'debian', Vulnerabilities: [vulnerability] }],
    ...others,
  });
  const openssl = { VulnerabilityID: 'CVE-2026-0001', PkgName: 'libssl3', InstalledVersion: '3.0.15-1' };

  test.each<[string, object, readonly string[]]>([
    [
      'with all fields',
      { ...openssl, FixedVersion: '3.0.16-1', Severity: 'HIGH', Unknown: 1 },
      ['CVE-2026-0001 libssl3 3.0.15-1 -> 3.0.16-1 high'],
    ],
    ['without a rating', { ...openssl, Severity: 'UNKNOWN' }, ['CVE-2026-0001 libssl3 3.0.15-1 unknown']],
    [
      'with scores alone, by the highest',
      { ...openssl, CVSS: { nvd: { V2Score: 4, V3Score: 7.5 }, redhat: { V3Score: 5 } } },
      ['CVE-2026-0001 libssl3 3.0.15-1 high'],
    ],
    [
      'with a rating that is lower than its scores: the distribution knows its build',
      { ...openssl, Severity: 'LOW', CVSS: { nvd: { V3Score: 9.8 } } },
      ['CVE-2026-0001 libssl3 3.0.15-1 low'],
    ],
    ['that does not affect the image', { ...openssl, Status: 'not_affected', Severity: 'HIGH' }, []],
    ['without a version', { VulnerabilityID: 'DLA-1-1', PkgName: 'a', Severity: 'LOW' }, ['DLA-1-1 a  low']],
  ])('a vulnerability %s', (_what, vulnerability, expected) => {
    expect(shown(read(trivy(vulnerability)).findings)).toEqual(expected);
  });

  test('advisories of vendors are no aliases, because one is about several vulnerabilities', () => {
    const [finding] = read(trivy({ ...openssl, VendorIDs: ['RHSA-2026:1'], Severity: 'LOW' })).findings;
    expect(finding?.aliases).toEqual([]);
  });

  test('the image is named by its digest in a registry and that of its configuration', () => {
    const metadata = {
      RepoDigests: [`registry.example.com/os/base@${DIGEST}`],
      ImageID: OTHER,
      DiffIDs: [DIGEST],
    };
    const report = read(trivy(openssl, { Metadata: metadata, CreatedAt: '2026-03-01T00:00:00Z' }));
    expect(report).toMatchObject({ subjects: [[DIGEST, OTHER]], created: '2026-03-01T00:00:00Z' });
  });

  test.each<[string, unknown, string | undefined]>([
    ['has packages without vulnerabilities', [{ Class: 'os-pkgs' }], undefined],
    [
      'looked for secrets alone',
      [{ Class: 'secret', Vulnerabilities: null }],
      'it has no results of packages',
    ],
    ['has no results', null, 'it has no results of packages'],
  ])('a report that %s', (_what, Results, notAScanBecause) => {
    expect(read({ SchemaVersion: 2, Results }).notAScanBecause).toBe(notAScanBecause);
  });
});

describe('of Grype', () => {
  const match = (vulnerability: object, others: object = {}) => ({
    vulnerability: { id: 'CVE-2026-0001', severity: 'High', ...vulnerability },
    artifact: { name: 'libssl3', version: '3.0.15-1' },
    ...others,
  });
  const grype = (matches: unknown, others: object = {}) => ({
    matches,
    descriptor: { name: 'grype', version: '0.90.0', timestamp: '2026-03-01T00:00:00Z' },
    ...others,
  });

  test.each<[string, object, readonly string[]]>([
    [
      'fixed',
      match({ fix: { versions: ['3.0.16-1', '3.1'], state: 'fixed' } }),
      ['CVE-2026-0001 libssl3 3.0.15-1 -> 3.0.16-1, 3.1 high'],
    ],
    [
      'negligible',
      match({ severity: 'Negligible', fix: { versions: null } }),
      ['CVE-2026-0001 libssl3 3.0.15-1 negligible'],
    ],
    [
      'with a score alone',
      match({ severity: '', cvss: [{ metrics: { baseScore: 9.1 } }, { metrics: null }] }),
      ['CVE-2026-0001 libssl3 3.0.15-1 critical'],
    ],
    [
      'with a score of nothing',
      match({ severity: 'Unknown', cvss: [{ metrics: { baseScore: 0 } }] }),
      ['CVE-2026-0001 libssl3 3.0.15-1 negligible'],
    ],
  ])('a match that is %s', (_what, found, expected) => {
    expect(shown(read(grype([found])).findings)).toEqual(expected);
  });

  test('GitHub’s advisory and its CVE are one vulnerability', () => {
    const related = { relatedVulnerabilities: [{ id: 'CVE-2026-0001' }, { id: 'GHSA-aaaa-bbbb-cccc' }] };
    const [finding] = read(grype([match({ id: 'GHSA-aaaa-bbbb-cccc' }, related)])).findings;
    expect(finding).toMatchObject({ id: 'GHSA-aaaa-bbbb-cccc', aliases: ['CVE-2026-0001'] });
  });

  test('what was ignored does not count', () => {
    expect(read(grype([], { ignoredMatches: [match({})] })).findings).toEqual([]);
  });

  test.each<[string, unknown, readonly string[]]>([
    [
      'an image',
      { manifestDigest: DIGEST, imageID: OTHER, repoDigests: [`r/a@${DIGEST}`], layers: [] },
      [DIGEST, OTHER],
    ],
    ['a directory', '/srv', []],
  ])('the target is %s', (_what, target, subject) => {
    expect(read(grype([], { source: { type: 'x', target } })).subjects).toEqual([subject]);
  });
});

describe('of CycloneDX', () => {
  const component = { 'bom-ref': 'ssl', name: 'libssl3', version: '3.0.15-1' };
  const SERIAL = '3e671687-395b-41f5-a30f-a58921a69b79';
  const bom = (vulnerabilities: unknown, others: object = {}) => ({
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    serialNumber: `urn:uuid:${SERIAL}`,
    components: [component],
    vulnerabilities,
    ...others,
  });
  const found = (others: object = {}) => ({ id: 'CVE-2026-0001', affects: [{ ref: 'ssl' }], ...others });

  test.each<[string, readonly object[], string]>([
    ['one word', [{ severity: 'high' }], 'high'],
    ['none, which is a rating', [{ severity: 'none' }], 'negligible'],
    ['information', [{ severity: 'info' }], 'negligible'],
    ['a word and a score: the word', [{ severity: 'low', score: 8.2, method: 'CVSSv31' }], 'low'],
    ['a score alone', [{ score: 9.8, method: 'CVSSv31' }], 'critical'],
    ['nobody knows, with a score', [{ severity: 'unknown', score: 4, method: 'CVSSv4' }], 'medium'],
    [
      'several: the worst',
      [{ severity: 'low' }, { severity: 'critical' }, { severity: 'unknown' }],
      'critical',
    ],
    [
      'several, one of the source that reported it: that one',
      [
        { severity: 'critical', source: { name: 'nvd' } },
        { severity: 'low', source: { name: 'debian' } },
      ],
      'low',
    ],
    [
      'EPSS and KEV, which are no CVSS',
      [
        { score: 0.9, method: 'other' },
        { score: 1, method: 'other' },
      ],
      'unknown',
    ],
    ['an OWASP score', [{ score: 30, method: 'OWASP' }], 'unknown'],
    ['nothing', [], 'unknown'],
  ])('rated by %s', (_what, ratings, severity) => {
    const report = read(bom([found({ ratings, source: { name: 'debian' } })]));
    expect(report.findings.map((each) => each.severity)).toEqual([severity]);
  });

  test.each<[string, object, readonly string[]]>([
    ['a component', found(), ['CVE-2026-0001 libssl3 3.0.15-1 unknown']],
    ['a component within another', found({ affects: [{ ref: 'inner' }] }), ['CVE-2026-0001 inner 1 unknown']],
    [
      'a component by a BOM-Link of the same document',
      found({ affects: [{ ref: `urn:cdx:${SERIAL}/1#ssl` }] }),
      ['CVE-2026-0001 libssl3 3.0.15-1 unknown'],
    ],
    [
      'a component of another document',
      found({ affects: [{ ref: `urn:cdx:${SERIAL.replace('3', '4')}/1#ssl` }] }),
      [],
    ],
    [
      'two components',
      found({ affects: [{ ref: 'ssl' }, { ref: 'inner' }] }),
      ['CVE-2026-0001 libssl3 3.0.15-1 unknown', 'CVE-2026-0001 inner 1 unknown'],
    ],
    ['the whole', found({ affects: [] }), ['CVE-2026-0001 base  unknown']],
    [
      'versions that are unaffected',
      found({ affects: [{ ref: 'ssl', versions: [{ version: '3', status: 'unaffected' }] }] }),
      [],
    ],
    [
      'a package URL that no component has',
      found({ affects: [{ ref: 'pkg:deb/debian/libstdc%2B%2B6@12.3-1~a?arch=amd64' }] }),
      ['CVE-2026-0001 libstdc++6 12.3-1~a unknown'],
    ],
    ['a component, and was withdrawn', found({ rejected: '2026-03-01T00:00:00Z' }), []],
    ['a component, and is resolved', found({ analysis: { state: 'resolved' } }), []],
    [
      'a component, and is resolved in its pedigree',
      found({ analysis: { state: 'resolved_with_pedigree' } }),
      [],
    ],
    ['a component, and was wrong', found({ analysis: { state: 'false_positive' } }), []],
    ['a component, and is not affected', found({ analysis: { state: 'not_affected' } }), []],
    [
      'a component, and is in triage',
      found({ analysis: { state: 'in_triage' } }),
      ['CVE-2026-0001 libssl3 3.0.15-1 unknown'],
    ],
    [
      'a component, with what to upgrade to',
      found({ recommendation: 'Upgrade a to version 1; Upgrade libssl3 to version 3.0.16-1' }),
      ['CVE-2026-0001 libssl3 3.0.15-1 -> 3.0.16-1 unknown'],
    ],
  ])('it affects %s', (_what, vulnerability, expected) => {
    const components = [{ ...component, components: [{ 'bom-ref': 'inner', name: 'inner', version: '1' }] }];
    const other = { id: 'CVE-2000-0001', affects: [{ ref: 'x' }] };
    const metadata = { component: { name: 'base' } };
    const { findings } = read(bom([vulnerability, other], { components, metadata }));
    expect(shown(findings.filter(({ id }) => id !== other.id))).toEqual(expected);
  });

  test('references are other names of it', () => {
    const references = [
      { id: 'GHSA-aaaa-bbbb-cccc', source: {} },
      { id: 'CVE-2026-0001', source: {} },
    ];
    expect(read(bom([found({ references })])).findings[0]?.aliases).toEqual(['GHSA-aaaa-bbbb-cccc']);
  });

  test.each<[string, object, string]>([
    ['nobody has scanned', bom(undefined), 'its list of vulnerabilities is empty'],
    ['Trivy wrote without a scan', bom([]), 'its list of vulnerabilities is empty'],
    ['has no components', bom([found()], { components: [] }), 'it has no components'],
    ['was analysed to the end', bom([found({ analysis: { state: 'exploitable' } })]), 'has an analysis'],
  ])('a document that %s is no scan', (_what, document, why) => {
    expect(read(document)).toMatchObject({ notAScanBecause: expect.stringContaining(why), findings: [] });
  });

  test.each<[string, object, readonly string[]]>([
    ['its version, as Grype has it', { name: 'a', version: DIGEST }, [DIGEST]],
    ['a package URL', { name: 'a', purl: `pkg:oci/base@${encodeURIComponent(DIGEST)}?arch=amd64` }, [DIGEST]],
    [
      'properties, as Trivy has them',
      {
        name: 'a',
        properties: [
          { name: 'aquasecurity:trivy:RepoDigest', value: `r/a@${DIGEST}` },
          { name: 'aquasecurity:trivy:ImageID', value: OTHER },
          { name: 'aquasecurity:trivy:DiffID', value: `sha256:${'c'.repeat(64)}` },
        ],
      },
      [DIGEST, OTHER],
    ],
    ['nothing', { name: 'a', version: '42' }, []],
  ])('the image is named by %s', (_what, subject, digests) => {
    expect(read(bom([found()], { metadata: { component: subject } })).subjects).toEqual([digests]);
  });

  test.each([
    [[{ vendor: 'a', name: 'old', version: '1' }], 'old 1'],
    [{ components: [{ name: 'new', version: '2' }] }, 'new 2'],
    [null, 'an unnamed tool'],
  ])('tools %j', (tools, tool) => {
    expect(read(bom([found()], { metadata: { tools } })).tool).toBe(tool);
  });
});

describe('of SARIF', () => {
  const rule = (others: object = {}) => ({
    id: 'CVE-2026-0001',
    properties: { tags: ['vulnerability', 'security', 'HIGH'], 'security-severity': '5.3' },
    ...others,
  });
  const result = (others: object = {}) => ({
    ruleId: 'CVE-2026-0001',
    ruleIndex: 0,
    message: {
      text: 'Package: libssl3\nInstalled Version: 3.0.15-1\nVulnerability CVE-2026-0001\nSeverity: HIGH\nFixed Version: 3.0.16-1',
    },
    ...others,
  });
  const run = (rules: readonly object[], results: unknown, others: object = {}) => ({
    tool: { driver: { name: 'Trivy', version: '0.69', rules } },
    results,
    ...others,
  });
  const sarif = (...runs: readonly object[]) => ({ version: '2.1.0', runs });
  const grypeRule = {
    id: 'CVE-2026-0001-libssl3',
    help: {
      text: 'Vulnerability CVE-2026-0001\nSeverity: high\nPackage: libssl3\nVersion: 3.0.15-1\nFix Version: 3.0.16-1\nLink: CVE-2026-0001',
    },
    properties: { 'security-severity': '8.2' },
  };
  const openssl = 'CVE-2026-0001 libssl3 3.0.15-1 -> 3.0.16-1 high';

  test.each<[string, object, readonly string[]]>([
    ['Trivy', run([rule()], [result()]), [openssl]],
    [
      'Grype',
      run([grypeRule], [{ ruleId: grypeRule.id, message: { text: 'A high vulnerability' } }]),
      [openssl],
    ],
    [
      'Trivy, with an index that names another rule',
      run([rule({ id: 'CVE-1999-0001' }), rule()], [result()]),
      [openssl],
    ],
    ['Trivy, with an index alone', run([rule()], [result({ ruleId: undefined })]), [openssl]],
    [
      'a scan whose result is suppressed',
      run([rule()], [result({ suppressions: [{ kind: 'external' }] })]),
      [],
    ],
    [
      'a scan whose suppression is under review',
      run([rule()], [result({ suppressions: [{ status: 'underReview' }] })]),
      [openssl],
    ],
    ['a scan whose result passed', run([rule()], [result({ kind: 'pass' })]), []],
    ['a scan whose result has gone', run([rule()], [result({ baselineState: 'absent' })]), []],
    [
      'a scan that found a secret',
      run([{ id: 'aws-key', properties: { tags: ['secret', 'CRITICAL'] } }], [result({ ruleId: 'aws-key' })]),
      [],
    ],
    [
      'a scan with a name of a distribution',
      run([rule({ id: 'DLA-1-1' })], [result({ ruleId: 'DLA-1-1' })]),
      [openssl.replace('CVE-2026-0001', 'DLA-1-1')],
    ],
    [
      'a scan without tags and texts',
      run([rule({ properties: { 'security-severity': 9.1 } })], [{ ruleId: 'CVE-2026-0001' }]),
      ['CVE-2026-0001   critical'],
    ],
    [
      'a scan without a rule',
      run([], [{ ruleId: 'CVE-2026-0001', ruleIndex: -1 }]),
      ['CVE-2026-0001   unknown'],
    ],
  ])('%s', (_what, one, expected) => {
    expect(shown(read(sarif(one)).findings)).toEqual(expected);
  });

  test('all runs count, each with its own rules', () => {
    const second = run([rule({ id: 'CVE-2026-0002' })], [result({ ruleId: 'CVE-2026-0002' })]);
    const report = read(sarif(run([rule()], [result()], { properties: { imageID: DIGEST } }), second));
    expect(report.findings.map(({ id }) => id)).toEqual(['CVE-2026-0001', 'CVE-2026-0002']);
    expect(report.subjects).toEqual([[DIGEST], []]);
  });

  test.each<[string, object, string | undefined]>([
    ['of a scanner that found nothing', run([], []), undefined],
    ['that did not finish', run([rule()], null), 'a run has no results, so its tool did not finish'],
    [
      'of a tool that looks at source code',
      { tool: { driver: { name: 'CodeQL', rules: [] } }, results: [{ ruleId: 'js/xss' }] },
      'its results are of no vulnerabilities of packages',
    ],
  ])('a log %s', (_what, one, notAScanBecause) => {
    expect(read(sarif(one)).notAScanBecause).toBe(notAScanBecause);
  });
});

describe('of OpenVEX', () => {
  const vex = (...statements: readonly object[]) => ({
    '@context': 'https://openvex.dev/ns/v0.2.0',
    author: 'Example',
    timestamp: '2026-03-01T00:00:00Z',
    statements,
  });

  test.each<[string, object, object]>([
    [
      'an image and its packages',
      {
        '@id': `pkg:oci/base@${DIGEST.replace(':', '%3A')}`,
        subcomponents: [{ '@id': 'pkg:deb/debian/libssl3@3.0' }],
      },
      { image: { digest: DIGEST }, packages: [{ name: 'libssl3', version: '3.0' }] },
    ],
    [
      'an image by its hash',
      { '@id': 'https://example.com', hashes: { 'sha-256': 'a'.repeat(64) } },
      { image: { digest: DIGEST }, packages: [] },
    ],
    ['an image without a digest', { '@id': 'pkg:oci/base' }, { image: { repository: 'base' }, packages: [] }],
    [
      'a package',
      { identifiers: { purl: 'pkg:deb/debian/libssl3' } },
      { image: undefined, packages: [{ name: 'libssl3' }] },
    ],
  ])('a statement about %s', (_what, product, expected) => {
    const statement = {
      vulnerability: { name: 'CVE-2026-0001', aliases: ['GHSA-1'] },
      products: [product],
      status: 'fixed',
    };
    const report = read(vex(statement));
    expect(report.statements).toEqual([
      expect.objectContaining({ ids: ['CVE-2026-0001', 'GHSA-1'], status: 'not_affected', ...expected }),
    ]);
    expect(report.notAScanBecause).toBe('it is VEX and no scan');
  });

  test('statements are in the order of their time', () => {
    const product = { products: [{ '@id': 'pkg:oci/base' }], vulnerability: 'CVE-2026-0001' };
    const later = { ...product, status: 'affected', timestamp: '2026-03-03T00:00:00Z' };
    const report = read(vex(later, { ...product, status: 'not_affected' }));
    expect(report.statements.map(({ status }) => status)).toEqual(['not_affected', 'affected']);
  });
});

describe('in an attestation', () => {
  const report = { SchemaVersion: 2, Results: [{ Class: 'os-pkgs' }], Metadata: { ImageID: OTHER } };
  const statement = (predicate: unknown) => ({
    _type: 'https://in-toto.io/Statement/v0.1',
    predicateType: 'https://cosign.sigstore.dev/attestation/vuln/v1',
    subject: [{ name: 'r/a', digest: { sha256: 'a'.repeat(64) } }],
    predicate,
  });
  const envelope = (json: unknown) => ({
    payloadType: 'application/vnd.in-toto+json',
    payload: Buffer.from(JSON.stringify(json)).toString('base64'),
    signatures: [],
  });

  test.each<[string, unknown]>([
    ['a statement', statement(report)],
    ['a statement of cosign about a scan', statement({ scanner: { uri: 'x', result: report } })],
    ['an envelope', envelope(statement(report))],
    ['a bundle of Sigstore', { mediaType: 'x', dsseEnvelope: envelope(statement(report)) }],
  ])('%s has the report, and both name the image', (_what, json) => {
    expect(read(json)).toMatchObject({ format: 'Trivy', subjects: [[OTHER], [DIGEST]] });
  });
});

describe('a document is refused', () => {
  test.each<[string, unknown, string]>([
    ['of another kind', { spdxVersion: 'SPDX-2.3' }, 'scan.json: expected a report of CycloneDX'],
    ['that is a list', [], 'scan.json: expected a report of CycloneDX'],
    [
      'with an unknown word for a severity',
      {
        SchemaVersion: 2,
        Results: [{ Vulnerabilities: [{ VulnerabilityID: 'A', PkgName: 'a', Severity: 'Important' }] }],
      },
      'scan.json: Results[0].Vulnerabilities[0].Severity: expected one of critical, high',
    ],
    ['of an old Trivy', { SchemaVersion: 1 }, 'scan.json: SchemaVersion: expected 2'],
    [
      'without an id',
      { matches: [{ vulnerability: {}, artifact: { name: 'a' } }], descriptor: {} },
      'scan.json: matches[0].vulnerability.id: expected string',
    ],
    [
      'of an old CycloneDX',
      { bomFormat: 'CycloneDX', specVersion: '1.3' },
      'scan.json: specVersion: expected 1.4 or later; none before has vulnerabilities',
    ],
    [
      'with a component that is none',
      {
        bomFormat: 'CycloneDX',
        specVersion: '1.6',
        components: [{ components: [{ name: 7 }] }],
        vulnerabilities: [],
      },
      'scan.json: components[0].components[0].name: expected string',
    ],
    ['of SARIF 2.0', { version: '2.0.0', runs: [] }, 'scan.json: version: expected 2.1.0'],
    [
      'with a score that is none',
      {
        matches: [
          { vulnerability: { id: 'A', cvss: [{ metrics: { baseScore: 11 } }] }, artifact: { name: 'a' } },
        ],
        descriptor: {},
      },
      'matches[0].vulnerability.cvss[0].metrics.baseScore: expected',
    ],
  ])('%s', (_what, json, message) => {
    expect(() => read(json)).toThrow(message);
  });

  test('that is not JSON, is too deep, or is too large', () => {
    expect(() => readReport(Buffer.from('<html>\u001B[2J'), 'scan.json')).toThrow(
      /^scan\.json: is not valid JSON; expected a report/,
    );
    const deep = Buffer.from('['.repeat(200_000));
    expect(() => readReport(deep, 'scan.json')).toThrow('more than 100 lists and objects within one another');
    expect(() => read({ matches: [], descriptor: { name: '['.repeat(500) } })).not.toThrow();
    const large = Buffer.alloc(MAX_REPORT_BYTES + 1, ' ');
    expect(() => readReport(large, 'scan.json')).toThrow(`more than the limit of ${MAX_REPORT_BYTES}`);
  });

  test('with components that nest without end', () => {
    const nested = (depth: number): object =>
      depth === 0 ? {} : { name: 'a', components: [nested(depth - 1)] };
    const document = (depth: number) => ({
      bomFormat: 'CycloneDX',
      specVersion: '1.6',
      components: [nested(depth)],
      vulnerabilities: [],
    });
    expect(() => read(document(20))).toThrow('components at most 20 levels deep');
    expect(() => read(document(19))).not.toThrow();
  });
});
