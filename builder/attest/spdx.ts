import { createHash } from 'node:crypto';
import { by } from '../../api/order.ts';
import { hexOf, pullspecDigest, repositoryOf } from '../../api/references.ts';
import type { LayerEntry } from '../../image/layer/entry.ts';
import { canonicalJson } from '../../machineconfig/canonical-json.ts';
import type { BuildFacts } from '../layer/build-facts.ts';

export const SPDX_TYPE = 'application/spdx+json';

type FileEntry = Extract<LayerEntry, { readonly type: 'file' }>;

const NAMESPACE = 'https://shale.dev/spdx';
const IMAGE = 'SPDXRef-Image';
const BASE = 'SPDXRef-BaseImage';

/**
 * The files that an image adds to its base, as an SPDX document (version 2.3). The files of the base are not listed;
 * it is named by its digest. Links and directories have no content, and so no place among SPDX's files.
 *
 * @param entries of the image's layer.
 * @returns JSON in its canonical form; the same image has the same document.
 */
export function spdxDocument(facts: BuildFacts, entries: readonly LayerEntry[]): string {
  const files = filesOf(entries).map(fileElement);
  const digest = pullspecDigest(facts.image);
  return canonicalJson({
    spdxVersion: 'SPDX-2.3',
    dataLicense: 'CC0-1.0',
    SPDXID: 'SPDXRef-DOCUMENT',
    name: facts.image,
    documentNamespace: `${NAMESPACE}/${digest.replace(':', '-')}`,
    creationInfo: { created: facts.created, creators: [`Tool: shale-${facts.version}`] },
    packages: [
      {
        ...packageElement(IMAGE, facts.image),
        filesAnalyzed: true,
        packageVerificationCode: { packageVerificationCodeValue: verificationCode(files) },
        comment: `the layer of pool ${facts.pool}: ${facts.renderedConfig}`,
      },
      { ...packageElement(BASE, facts.baseImage), filesAnalyzed: false },
    ],
    files,
    relationships: [
      relationship('SPDXRef-DOCUMENT', 'DESCRIBES', IMAGE),
      relationship(IMAGE, 'DESCENDANT_OF', BASE),
      ...files.map(({ SPDXID }) => relationship(IMAGE, 'CONTAINS', SPDXID)),
    ],
  });
}

/** Sorted by path; a hard link is a file with its target's content. */
function filesOf(entries: readonly LayerEntry[]): FileEntry[] {
  const byPath = new Map(entries.map((entry) => [entry.path, entry]));
  const files = entries.flatMap((entry): FileEntry[] => {
    if (entry.type === 'file') return [entry];
    const target = entry.type === 'hardlink' ? byPath.get(entry.target) : undefined;
    return target?.type === 'file' ? [{ ...target, path: entry.path }] : [];
  });
  return files.sort(by(({ path }) => path));
}

function fileElement({ path, content }: FileEntry) {
  return {
    // An id has letters, digits, . and - only (SPDX 2.3, 8.2), so it is made of the path's hash.
    SPDXID: `SPDXRef-File-${hex('sha256', path).slice(0, 32)}`,
    fileName: `.${path}`,
    checksums: [
      { algorithm: 'SHA1', checksumValue: hex('sha1', content) },
      { algorithm: 'SHA256', checksumValue: hex('sha256', content) },
    ],
    licenseConcluded: 'NOASSERTION',
    licenseInfoInFiles: ['NOASSERTION'],
    copyrightText: 'NOASSERTION',
  };
}

function packageElement(SPDXID: string, image: BuildFacts['image']) {
  const [, ...path] = repositoryOf(image).split('/');
  const digest = pullspecDigest(image);
  const name = path.at(-1) ?? '';
  // package-url, types/oci: the name is the repository's last part, and where it lies is a qualifier.
  const locator = `pkg:oci/${name}@${encodeURIComponent(digest)}?repository_url=${encodeURIComponent(repositoryOf(image))}`;
  return {
    SPDXID,
    name: repositoryOf(image),
    versionInfo: digest,
    downloadLocation: 'NOASSERTION',
    checksums: [{ algorithm: 'SHA256', checksumValue: hexOf(digest) }],
    externalRefs: [
      {
        referenceCategory: 'PACKAGE-MANAGER',
        referenceType: 'purl',
        referenceLocator: locator,
      },
    ],
    licenseConcluded: 'NOASSERTION',
    licenseDeclared: 'NOASSERTION',
    copyrightText: 'NOASSERTION',
    supplier: 'NOASSERTION',
    primaryPackagePurpose: 'OPERATING_SYSTEM',
  };
}

/** SPDX 2.3, 7.9.3: the SHA-1 of the files' SHA-1s, sorted and without anything between them. */
function verificationCode(files: readonly ReturnType<typeof fileElement>[]): string {
  const sums = files.map(({ checksums: [sha1] }) => sha1?.checksumValue ?? '');
  return hex('sha1', sums.sort().join(''));
}

function relationship(spdxElementId: string, relationshipType: string, relatedSpdxElement: string) {
  return { spdxElementId, relationshipType, relatedSpdxElement };
}

function hex(algorithm: 'sha1' | 'sha256', content: Uint8Array | string): string {
  return createHash(algorithm).update(content).digest('hex');
}
