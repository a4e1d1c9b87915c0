import { expect, test } from 'vitest';
import { sbomOf } from './sbom.ts';

const installed = JSON.stringify({
  packages: {
    'node_modules/@noble/ciphers': {
      version: '2.4.0',
      resolved: 'https://registry.example/@noble/ciphers/-/ciphers-2.4.0.tgz',
      integrity: 'sha512-AAEC',
      license: 'MIT',
    },
    'node_modules/a/node_modules/b': { version: '1.0.0' },
  },
});

test('names every package with its version, its origin and its licence', () => {
  const document = JSON.parse(sbomOf('0.1.0', installed, 'libc6\t2.36-9+deb12u1\tdeb\n'));

  expect(document).toMatchObject({ spdxVersion: 'SPDX-2.3', SPDXID: 'SPDXRef-DOCUMENT' });
  const locators = document.packages.flatMap(
    ({ externalRefs = [] }: { externalRefs?: { referenceLocator: string }[] }) =>
      externalRefs.map(({ referenceLocator }) => referenceLocator),
  );
  expect(locators.sort()).toEqual([
    'pkg:deb/libc6@2.36-9%2Bdeb12u1',
    'pkg:npm/%40noble/ciphers@2.4.0',
    'pkg:npm/b@1.0.0',
  ]);
  expect(document.packages.find(({ name }: { name: string }) => name === '@noble/ciphers')).toMatchObject({
    downloadLocation: 'https://registry.example/@noble/ciphers/-/ciphers-2.4.0.tgz',
    checksums: [{ algorithm: 'SHA512', checksumValue: '000102' }],
    licenseDeclared: 'MIT',
  });
  // SPDX 2.3, "Package download location": every package has one.
  expect(document.packages.find(({ name }: { name: string }) => name === 'b')).toMatchObject({
    downloadLocation: 'NOASSERTION',
  });
  const contained = document.relationships.map(
    ({ relatedSpdxElement }: { relatedSpdxElement: string }) => relatedSpdxElement,
  );
  expect(contained).toEqual(document.packages.map(({ SPDXID }: { SPDXID: string }) => SPDXID));
});

test('is the same for the same packages, in whatever order, and another for others', () => {
  const { packages } = JSON.parse(installed);
  const reversed = JSON.stringify({ packages: Object.fromEntries(Object.entries(packages).reverse()) });
  expect(sbomOf('0.1.0', reversed, '')).toBe(sbomOf('0.1.0', installed, ''));
  expect(sbomOf('0.1.0', installed, 'libc6\t2\tdeb\n')).not.toBe(sbomOf('0.1.0', installed, ''));
});

test('refuses a line that is no package', () => {
  expect(() => sbomOf('0.1.0', installed, 'libc6 2.36\n')).toThrow('system package "libc6 2.36"');
});
