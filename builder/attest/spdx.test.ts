import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { type Digest, parseDigestedPullspec } from '../../api/references.ts';
import type { LayerEntry } from '../../image/layer/entry.ts';
import type { BuildFacts } from '../layer/build-facts.ts';
import { spdxDocument } from './spdx.ts';

const digest = (letter: string) => `sha256:${letter.repeat(64)}` as Digest;
const facts: BuildFacts = {
  image: parseDigestedPullspec(`[::1]:5000/os/worker@${digest('a')}`),
  pool: 'worker',
  renderedConfig: 'rendered-worker-1',
  renderedConfigDigest: digest('c'),
  requestedBase: '[::1]:5000/os/stock:1',
  baseImage: parseDigestedPullspec(`[::1]:5000/os/stock@${digest('b')}`),
  policyDigest: digest('d'),
  architecture: 'amd64',
  pushSpec: '[::1]:5000/os/worker:build-1',
  created: '1970-01-01T00:00:00Z',
  version: '0.1.0',
  source: {},
};
const owner = { uid: 0, gid: 0 };
const file = (path: string, text: string): LayerEntry => ({
  type: 'file',
  path,
  mode: 0o644,
  ...owner,
  content: Buffer.from(text),
});

const id = z.string().regex(/^SPDXRef-[A-Za-z0-9.-]+$/);
const license = z.literal('NOASSERTION');
const checksum = z.discriminatedUnion('algorithm', [
  z.strictObject({ algorithm: z.literal('SHA1'), checksumValue: z.string().regex(/^[0-9a-f]{40}$/) }),
  z.strictObject({ algorithm: z.literal('SHA256'), checksumValue: z.string().regex(/^[0-9a-f]{64}$/) }),
]);
/** What the published schema (SPDX 2.3, schemas/spdx-schema.json) and the specification ask of the fields used. */
const Document = z.strictObject({
  spdxVersion: z.literal('SPDX-2.3'),
  dataLicense: z.literal('CC0-1.0'),
  SPDXID: z.literal('SPDXRef-DOCUMENT'),
  name: z.string(),
  documentNamespace: z.url(),
  creationInfo: z.strictObject({
    created: z.iso.datetime(),
    creators: z.array(z.string().regex(/^(Person|Organization|Tool): /)).min(1),
  }),
  packages: z.array(
    z.strictObject({
      SPDXID: id,
      name: z.string(),
      versionInfo: z.string(),
      downloadLocation: license,
      filesAnalyzed: z.boolean(),
      packageVerificationCode: z
        .strictObject({ packageVerificationCodeValue: z.string().regex(/^[0-9a-f]{40}$/) })
        .optional(),
      checksums: z.array(checksum),
      externalRefs: z.array(
        z.strictObject({
          referenceCategory: z.enum(['OTHER', 'PERSISTENT-ID', 'SECURITY', 'PACKAGE-MANAGER']),
          referenceType: z.literal('purl'),
          referenceLocator: z.string().regex(/^pkg:oci\/[a-z0-9._-]+@\S+$/),
        }),
      ),
      licenseConcluded: license,
      licenseDeclared: license,
      copyrightText: license,
      supplier: license,
      primaryPackagePurpose: z.enum(['CONTAINER', 'OPERATING_SYSTEM']),
      comment: z.string().optional(),
    }),
  ),
  files: z.array(
    z.strictObject({
      SPDXID: z.string().regex(/^SPDXRef-File-[0-9a-f]{32}$/),
      fileName: z.string().startsWith('./'),
      checksums: z.array(checksum).min(1),
      licenseConcluded: license,
      licenseInfoInFiles: z.array(license),
      copyrightText: license,
    }),
  ),
  relationships: z.array(
    z.strictObject({
      spdxElementId: id,
      relationshipType: z.enum(['DESCRIBES', 'DESCENDANT_OF', 'CONTAINS']),
      relatedSpdxElement: id,
    }),
  ),
});

const documentOf = (entries: readonly LayerEntry[]) =>
  Document.parse(JSON.parse(spdxDocument(facts, entries)));
const hex = (algorithm: string, text: string) => createHash(algorithm).update(text).digest('hex');

test('lists the files of the layer with their checksums, and no links or directories', () => {
  const { files } = documentOf([
    file('/etc/motd', 'hello'),
    { type: 'directory', path: '/etc/empty.d', mode: 0o755, ...owner },
    { type: 'symlink', path: '/etc/link', target: '/etc/motd', ...owner },
    { type: 'hardlink', path: '/etc/again', target: '/etc/motd' },
  ]);
  const checksums = [
    { algorithm: 'SHA1', checksumValue: hex('sha1', 'hello') },
    { algorithm: 'SHA256', checksumValue: hex('sha256', 'hello') },
  ];
  expect(files.map(({ fileName, checksums: of }) => [fileName, of])).toEqual([
    ['./etc/again', checksums],
    ['./etc/motd', checksums],
  ]);
});

test('every element it speaks of is in it, once', () => {
  const path = fc
    .array(fc.stringMatching(/^[^/\0]{1,20}$/), { minLength: 1, maxLength: 4 })
    .map((parts) => `/${parts.join('/')}`);
  fc.assert(
    fc.property(fc.uniqueArray(path, { maxLength: 20 }), (paths) => {
      const document = documentOf(paths.map((name) => file(name, name)));
      const ids = [document, ...document.packages, ...document.files].map(({ SPDXID }) => SPDXID);
      expect(new Set(ids).size).toBe(ids.length);
      for (const { spdxElementId, relatedSpdxElement } of document.relationships) {
        expect(ids).toContain(spdxElementId);
        expect(ids).toContain(relatedSpdxElement);
      }
      const contained = document.relationships.filter(
        ({ relationshipType }) => relationshipType === 'CONTAINS',
      );
      expect(contained).toHaveLength(paths.length);
    }),
  );
});

test("the package's verification code is that of its files (SPDX 2.3, 7.9)", () => {
  // In the order of their paths the sums would be another code.
  const [image, base] = documentOf([file('/b', '1'), file('/a', '2')]).packages;
  const sums = [hex('sha1', '1'), hex('sha1', '2')].sort().join('');
  expect(image?.packageVerificationCode?.packageVerificationCodeValue).toBe(hex('sha1', sums));
  expect(base).toMatchObject({ filesAnalyzed: false, versionInfo: digest('b') });
  expect(base?.packageVerificationCode).toBeUndefined();
});

test('entries in another order are the same bytes, another image another namespace', () => {
  const entries = [file('/b', '2'), file('/a', '1')];
  expect(spdxDocument(facts, entries)).toBe(spdxDocument(facts, [...entries].reverse()));
  expect(documentOf(entries).documentNamespace).toBe(`https://shale.dev/spdx/sha256-${'a'.repeat(64)}`);
});
