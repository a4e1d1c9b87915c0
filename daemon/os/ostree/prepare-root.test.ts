import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import {
  composefsArgument,
  composefsSetting,
  demandsComposefs,
  hostConfiguration,
  parseRootConfiguration,
  rootConfigurations,
} from './prepare-root.ts';

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

const temporary = async () => {
  const directory = await mkdtemp(path.join(tmpdir(), 'shale-root-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const write = async (place: string, text: string) => {
    const file = path.join(directory, place, 'ostree/prepare-root.conf');
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, text);
  };
  return { directory, write };
};

test.each([
  ['/usr/lib', 'usr/lib', '/usr/lib/ostree/prepare-root.conf'],
  ['an /etc that ostree has not moved', 'etc', '/etc/ostree/prepare-root.conf'],
  ['an /etc that ostree has moved', 'usr/etc', '/etc/ostree/prepare-root.conf'],
])('an image has a configuration in %s', async (_name, place, file) => {
  const { directory, write } = await temporary();
  expect(await rootConfigurations(directory)).toEqual([]);
  await write(place, enabled('signed'));
  expect(await rootConfigurations(directory)).toMatchObject([{ file, composefs: 'signed' }]);
});

test.each([
  ['', false, false],
  ['[root]\ntransient = true\n', true, false],
  ['[root]\ntransient-ro=1\n', true, false],
  ['[etc]\ntransient = true\n[root]\ntransient = false\n', false, true],
  ['[etc]\n# transient = true\n', false, false],
])('%j makes / transient: %s, /etc: %s', (text, isRootTransient, isEtcTransient) => {
  expect(parseRootConfiguration('a', text)).toEqual({
    file: 'a',
    composefs: 'no',
    isRootTransient,
    isEtcTransient,
  });
});

test('a host has a configuration of its own where it differs from its image’s', async () => {
  const { directory, write } = await temporary();
  const [root, booted] = [path.join(directory, 'root'), path.join(directory, 'booted')];
  const own = () => hostConfiguration(root, booted);
  expect(await own()).toBeUndefined();
  await write('booted/usr/etc', enabled('yes'));
  await write('root/etc', enabled('yes'));
  expect(await own()).toBeUndefined();
  await write('root/etc', enabled('signed'));
  expect(await own()).toMatchObject({
    file: 'the host’s /etc/ostree/prepare-root.conf',
    composefs: 'signed',
  });
});

test('of two kernel arguments the first counts', () => {
  expect(composefsArgument(['rw'])).toBeUndefined();
  const both = ['rw', 'ostree.prepare-root.composefs=signed', 'ostree.prepare-root.composefs=0'];
  expect(composefsArgument(both)).toBe('signed');
});
