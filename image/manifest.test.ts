import { expect, test } from 'vitest';
import { digestOf } from './digest.ts';
import {
  goArchitecture,
  type Index,
  imageFor,
  parseImageConfig,
  parseManifest,
  platformsOf,
} from './manifest.ts';
import { ContentError } from './registry/registry-error.ts';

const entry = (os: string, architecture: string, variant?: string): Index['manifests'][number] => ({
  mediaType: 'application/vnd.oci.image.manifest.v1+json',
  digest: digestOf(Buffer.from(`${os} ${architecture} ${variant}`)),
  size: 1,
  platform: { os, architecture, ...(variant === undefined ? {} : { variant }) },
});
const plain = entry('linux', 'amd64');
const v3 = entry('linux', 'amd64', 'v3');
const arm8 = entry('linux', 'arm64', 'v8');
const arm9 = entry('linux', 'arm64', 'v9');
const arm6 = entry('linux', 'arm', 'v6');
const arm7 = entry('linux', 'arm', 'v7');
const other = entry('windows', 'amd64');

test.each([
  ['the one without a variant, wherever it stands', [v3, plain], 'amd64', plain],
  ['what every arm64 node runs', [arm9, arm8], 'arm64', arm8],
  ['the first where none is plain', [arm6, arm7], 'arm', arm6],
  ['never that of another system', [other], 'amd64', undefined],
  ['nothing of another architecture', [plain], 's390x', undefined],
])('%s', (_name, manifests, architecture, chosen) => {
  expect(imageFor({ manifests }, architecture)).toBe(chosen);
});

test('platforms are told as people write them', () => {
  const { platform: _, ...unknown } = plain;
  expect(platformsOf({ manifests: [plain, arm7, unknown] })).toEqual([
    'linux/amd64',
    'linux/arm/v7',
    'unknown',
  ]);
});

test.each([
  ['x64', 'amd64'],
  ['ia32', '386'],
  ['arm64', 'arm64'],
  ['s390x', 's390x'],
])('%s is %s', (nodeWord, goWord) => {
  expect(goArchitecture(nodeWord)).toBe(goWord);
});

test.each([
  ['null', /^r: : ./],
  ['[]', /^r: : ./],
  ['{"schemaVersion":2,"manifests":{}}', /^r: manifests: ./],
  ['{"schemaVersion":2,"layers":[]}', /^r: config: ./],
  ['{"schemaVersion":1,"layers":[]}', /^r: schemaVersion: Invalid input: expected 2$/],
  ['{', /^r: is not valid JSON$/],
])('a manifest of %s is refused by what is wrong', (text, message) => {
  expect(() => parseManifest(Buffer.from(text), 'r')).toThrow(ContentError);
  expect(() => parseManifest(Buffer.from(text), 'r')).toThrow(message);
});

test('a part of a manifest may be empty, and no smaller', () => {
  const text = (size: number) => {
    const part = { mediaType: 'x', digest: digestOf(Buffer.of()), size };
    return Buffer.from(JSON.stringify({ schemaVersion: 2, config: part, layers: [] }));
  };
  expect(parseManifest(text(0), 'r').kind).toBe('image');
  expect(() => parseManifest(text(-1), 'r')).toThrow(/^r: config\.size: ./);
});

test('a configuration is refused by the field that is wrong', () => {
  const text = '{"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":[7]}}';
  expect(() => parseImageConfig(Buffer.from(text), 'r')).toThrow(/^r: rootfs\.diff_ids\.0: ./);
});
