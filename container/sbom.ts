import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { by } from '../api/order.ts';
import { canonicalJson } from '../machineconfig/canonical-json.ts';

/**
 * Prints what Shale's image is made of as an SPDX document (version 2.3): Shale, the npm packages that are installed,
 * and the packages of the distribution that programs and libraries were taken from.
 *
 *   node container/sbom.ts --version VERSION --installed FILE --system-packages FILE
 */

/**
 * `node_modules/.package-lock.json`: what npm installed, as opposed to what package-lock.json has for other platforms.
 */
const InstalledPackages = z.object({
  packages: z.record(
    z.string(),
    z.object({
      name: z.string().optional(),
      version: z.string().optional(),
      resolved: z.string().optional(),
      integrity: z.string().optional(),
      license: z.string().optional(),
    }),
  ),
});

/** A package of the distribution, as container/collect-root prints it. */
interface SystemPackage {
  readonly name: string;
  readonly version: string;
  /** package-url's type: deb, rpm. */
  readonly type: string;
}

const SHALE = 'SPDXRef-Shale';

/**
 * @param installed text of `node_modules/.package-lock.json`.
 * @param systemPackages a package a line: name, version, purl type, with tabs between.
 * @param product what it is a bill of.
 * @returns JSON in its canonical form; the same packages have the same document.
 * @throws ZodError for a lock file that can't be read.
 */
export function sbomOf(
  version: string,
  installed: string,
  systemPackages: string,
  product: 'image' | 'cli' = 'image',
): string {
  const npm = Object.entries(InstalledPackages.parse(JSON.parse(installed)).packages).map(npmElement);
  const system = systemPackages
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => systemElement(systemPackage(line)));
  const parts = [...npm, ...system].sort(by(({ SPDXID }) => SPDXID));
  const contents = createHash('sha256').update(canonicalJson(parts)).digest('hex');
  return canonicalJson({
    spdxVersion: 'SPDX-2.3',
    dataLicense: 'CC0-1.0',
    SPDXID: 'SPDXRef-DOCUMENT',
    name: `shale-${version}`,
    documentNamespace: `https://shale.dev/spdx/${product}/${version}-${contents}`,
    // Equal images are one, whenever they are made.
    creationInfo: { created: '1970-01-01T00:00:00Z', creators: [`Tool: shale-${version}`] },
    packages: [
      {
        ...element(SHALE, 'shale', version),
        licenseDeclared: 'Apache-2.0',
        primaryPackagePurpose: 'APPLICATION',
      },
      ...parts,
    ],
    relationships: [
      relationship('SPDXRef-DOCUMENT', 'DESCRIBES', SHALE),
      ...parts.map(({ SPDXID }) => relationship(SHALE, 'CONTAINS', SPDXID)),
    ],
  });
}

function npmElement([place, { name, version = '', resolved, integrity, license }]: [
  string,
  z.infer<typeof InstalledPackages>['packages'][string],
]) {
  const full = name ?? place.slice(place.lastIndexOf('node_modules/') + 'node_modules/'.length);
  // package-url, types/npm: the @ of a scope is escaped.
  const locator = `pkg:npm/${full.replace('@', '%40')}@${version}`;
  return {
    ...element(`SPDXRef-npm-${idOf(place)}`, full, version),
    downloadLocation: resolved ?? 'NOASSERTION',
    ...(integrity === undefined ? {} : { checksums: [checksumOf(integrity)] }),
    licenseDeclared: license ?? 'NOASSERTION',
    externalRefs: [purl(locator)],
  };
}

function systemElement({ name, version, type }: SystemPackage) {
  const locator = `pkg:${type}/${name}@${encodeURIComponent(version)}`;
  return {
    ...element(`SPDXRef-${type}-${idOf(name)}`, name, version),
    externalRefs: [purl(locator)],
  };
}

/** @throws Error for a line that has no version or no type. */
function systemPackage(line: string): SystemPackage {
  const [name, version, type] = line.split('\t');
  if (name === undefined || version === undefined || type === undefined) {
    throw new Error(
      `system package ${JSON.stringify(line)}: expected name, version and type, with tabs between`,
    );
  }
  return { name, version, type };
}

function element(SPDXID: string, name: string, version: string) {
  return {
    SPDXID,
    name,
    versionInfo: version,
    downloadLocation: 'NOASSERTION',
    filesAnalyzed: false,
    licenseConcluded: 'NOASSERTION',
    licenseDeclared: 'NOASSERTION',
    copyrightText: 'NOASSERTION',
    supplier: 'NOASSERTION',
  };
}

/** npm's integrity is a digest as in HTML (Subresource Integrity), in base64; SPDX has hexadecimal digits. */
function checksumOf(integrity: string) {
  const [algorithm = '', base64 = ''] = integrity.split('-', 2);
  return {
    algorithm: algorithm.toUpperCase(),
    checksumValue: Buffer.from(base64, 'base64').toString('hex'),
  };
}

/** An id has letters, digits, . and - only (SPDX 2.3, 8.2), so it is made of the hash. */
function idOf(name: string): string {
  return createHash('sha256').update(name).digest('hex').slice(0, 32);
}

function purl(referenceLocator: string) {
  return { referenceCategory: 'PACKAGE-MANAGER', referenceType: 'purl', referenceLocator };
}

function relationship(spdxElementId: string, relationshipType: string, relatedSpdxElement: string) {
  return { spdxElementId, relationshipType, relatedSpdxElement };
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      version: { type: 'string', default: '0.0.0' },
      installed: { type: 'string', default: 'node_modules/.package-lock.json' },
      'system-packages': { type: 'string', default: '/dev/null' },
    },
  });
  const installed = await readFile(values.installed, 'utf8');
  process.stdout.write(
    `${sbomOf(values.version, installed, await readFile(values['system-packages'], 'utf8'))}\n`,
  );
}
