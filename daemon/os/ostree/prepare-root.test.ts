import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { imageOf } from '../../../test/fixtures/step-context.ts';
import { composefsSetting, demandsComposefs, refuseSignedRoot, signedByFile } from './prepare-root.ts';

test.each([
  ['[composefs]\nenabled = yes\n', 'yes'],
  ['[composefs]\nenabled=signed\n[sysroot]\nreadonly=true\n', 'signed'],
  ['# enabled = yes\n[sysroot]\nenabled = yes\n', 'no'],
  ['[composefs]\nenabled = no\nenabled = maybe\n', 'maybe'],
  ['[composefs]\nenabled =\n', ''],
  ['', 'no'],
])('%j sets composefs to %j', (text, setting) => {
  expect(composefsSetting(text)).toBe(setting);
});

const enabled = (value: string) => `[composefs]\nenabled = ${value}\n`;

test.each([
  ['nothing', {}, [], false],
  ['the image', { 'usr/lib': 'yes' }, [], true],
  ['the image, with fs-verity', { 'usr/lib': 'verity' }, [], true],
  ['an image whose key may be in the initramfs alone', { 'usr/lib': 'signed' }, [], false],
  ['an image that takes another root, too', { 'usr/lib': 'maybe' }, [], false],
  ['the image, which the admin’s file contradicts', { 'usr/lib': 'yes', etc: 'no' }, [], false],
  ['the image, which the running /etc contradicts', { 'usr/lib': 'yes', 'running/etc': 'no' }, [], false],
  ['the image, which the /etc it comes with contradicts', { 'usr/lib': 'yes', 'usr/etc': 'no' }, [], false],
  ['a kernel argument', {}, ['rw', 'ostree.prepare-root.composefs=1'], true],
  [
    'the image, which a kernel argument contradicts',
    { 'usr/lib': 'yes' },
    ['ostree.prepare-root.composefs=maybe'],
    false,
  ],
] as const)('a composefs is demanded by %s', async (_name, files, kernelArguments, expected) => {
  const directory = await mkdtemp(path.join(tmpdir(), 'shale-root-'));
  try {
    for (const [place, value] of Object.entries(files)) {
      await mkdir(path.join(directory, place, 'ostree'), { recursive: true });
      await writeFile(path.join(directory, place, 'ostree/prepare-root.conf'), enabled(value));
    }
    const etc = path.join(directory, 'running/etc');
    expect(await demandsComposefs({ directory, etc, kernelArguments })).toBe(expected);
  } finally {
    await rm(directory, { recursive: true });
  }
});

test.each([
  ['/usr/lib', 'usr/lib', '/usr/lib/ostree/prepare-root.conf'],
  ['an /etc that ostree has not moved', 'etc', '/etc/ostree/prepare-root.conf'],
  ['an /etc that ostree has moved', 'usr/etc', '/etc/ostree/prepare-root.conf'],
])('a signature is demanded in %s', async (_name, place, expected) => {
  const tree = await mkdtemp(path.join(tmpdir(), 'shale-root-'));
  onTestFinished(() => rm(tree, { recursive: true }));
  expect(await signedByFile(tree)).toBeUndefined();
  const file = path.join(tree, place, 'ostree/prepare-root.conf');
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, enabled('verity'));
  expect(await signedByFile(tree)).toBeUndefined();
  await writeFile(file, enabled('signed'));
  expect(await signedByFile(tree)).toBe(expected);
});

const SIGNED_BY = '/usr/lib/ostree/prepare-root.conf';
const argument = (value: string) => `ostree.prepare-root.composefs=${value}`;

test.each<[string, string | undefined, string[], string | undefined]>([
  ['nothing', undefined, ['rw'], undefined],
  ['the image', SIGNED_BY, ['rw'], SIGNED_BY],
  ['a kernel argument', undefined, [argument('signed')], `the kernel argument ${argument('signed')}`],
  ['the image, and not the kernel argument', SIGNED_BY, [argument('verity')], undefined],
  ['the first of two kernel arguments', undefined, [argument('signed'), argument('0')], undefined],
])('a root is refused that %s demands to be signed', (_name, signedBy, kernelArguments, expected) => {
  const refuse = () => refuseSignedRoot({ image: imageOf('1'), signedBy, kernelArguments });
  if (expected === undefined) expect(refuse).not.toThrow();
  else expect(refuse).toThrow(`${imageOf('1')}: ${expected} demands a signed composefs`);
});
