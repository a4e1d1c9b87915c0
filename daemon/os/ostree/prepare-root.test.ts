import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { composefsSetting, demandsComposefs } from './prepare-root.ts';

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
