import { expect, test } from 'vitest';
import type { MachineConfig, MachineConfigSpec } from '../../api/machine-config.ts';
import type { MachineOSConfig, MachineOSConfigSpec } from '../../api/machine-os-config.ts';
import { parseDigest } from '../../api/references.ts';
import { baseChange } from './base-change.ts';
import type { BaseLookup } from './base-lookup.ts';
import { baseOf, type ImageInputs } from './image-inputs.ts';
import { imageToBuild } from './image-to-build.ts';

function inputs(
  name: string,
  spec: Partial<MachineConfigSpec> = {},
  more: Partial<MachineOSConfigSpec> = {},
  policyDigest = 'sha256:1',
): ImageInputs & { readonly rendered: MachineConfig; readonly machineOSConfig: MachineOSConfig } {
  const apiVersion = 'machineconfiguration.openshift.io/v1';
  return {
    rendered: {
      apiVersion,
      kind: 'MachineConfig',
      metadata: { name },
      spec: { config: { ignition: { version: '3.4.0' } }, ...spec },
    },
    machineOSConfig: {
      apiVersion,
      kind: 'MachineOSConfig',
      metadata: { name: 'worker' },
      spec: {
        machineConfigPool: { name: 'worker' },
        renderedImagePushSpec: 'r.example.com/os/worker:latest',
        baseImage: 'r.example.com/base:1',
        ...more,
      },
    },
    policyDigest,
  };
}

const CONTAINERFILE = {
  containerFile: [{ containerfileArch: 'NoArch' as const, content: 'FROM configs\nRUN dnf install -y htop' }],
};
const READS_TREE = {
  containerFile: [
    { containerfileArch: 'NoArch' as const, content: 'FROM configs\nCOPY machineconfig/etc/x /usr/x' },
  ],
};

test.each([
  ['nothing for equal inputs', inputs('a'), inputs('a'), undefined],
  ['a layer for another config', inputs('a'), inputs('b'), 'Append'],
  ['labels for other policies', inputs('a'), inputs('a', {}, {}, 'sha256:2'), 'Relabel'],
  [
    'a layer for another base image',
    inputs('a'),
    inputs('a', {}, { baseImage: 'r.example.com/base:2' }),
    'Append',
  ],
  ['an engine build for a new Containerfile', inputs('a'), inputs('a', {}, CONTAINERFILE), 'Engine'],
  [
    'a layer on the result of an earlier engine build',
    inputs('a', {}, CONTAINERFILE),
    inputs('b', {}, CONTAINERFILE),
    'Append',
  ],
  [
    'an engine build for commands that read the config',
    inputs('a', {}, READS_TREE),
    inputs('b', {}, READS_TREE),
    'Engine',
  ],
  ['an engine build for an extension', inputs('a'), inputs('b', { extensions: ['usbguard'] }), 'Engine'],
  ['an engine build for another kernel', inputs('a'), inputs('b', { kernelType: 'realtime' }), 'Engine'],
])('%s', (_what, before, after, way) => {
  expect(imageToBuild(before, after, ['amd64'])?.way).toBe(way);
});

test('a pool without a MachineOSConfig has no image', () => {
  const { machineOSConfig: _, ...standard } = inputs('b');
  const after = { ...standard, machineOSConfig: undefined };
  expect(imageToBuild({ ...after, rendered: inputs('a').rendered }, after, [])).toBeUndefined();
});

test('reports what no image can contain', () => {
  const contents = { source: 'data:,x' };
  const storage = { files: [{ path: '/usr/lib/modules/x', contents }] };
  const config = { ignition: { version: '3.4.0' }, storage };
  expect(imageToBuild(inputs('a'), inputs('b', { config }), [])?.problems).toEqual([
    expect.stringMatching(/^\/usr\/lib\/modules\/x: /),
  ]);
});

test("reports another base image, unless the config's diff already contains it", () => {
  const [before, other] = [inputs('a'), inputs('a', {}, { baseImage: 'r.example.com/base:2' })];
  expect(baseChange(before, other, imageToBuild(before, other, []))).toEqual({
    fromBase: 'r.example.com/base:1',
    toBase: 'r.example.com/base:2',
  });
  const named = inputs('b', { osImageURL: 'r.example.com/base:2' });
  expect(baseChange(before, named, imageToBuild(before, named, []))).toBeUndefined();
});

const ONE = `sha256:${'1'.repeat(64)}`;
const OTHER = `sha256:${'2'.repeat(64)}`;
const base = (name: string) => `r.example.com/base${name}`;

test.each<[string, string, string, boolean]>([
  ['another tag of the same digest', `:1@${ONE}`, `:2@${ONE}`, true],
  ['no tag and the same digest', `:1@${ONE}`, `@${ONE}`, true],
  ['another digest', `:1@${ONE}`, `:1@${OTHER}`, false],
  ['another repository', `@${ONE}`, `/copy@${ONE}`, false],
])('a base image with %s', (_what, from, to, isSame) => {
  const named = (name: string, rendered: string) => inputs(rendered, { osImageURL: base(name) });
  const [before, after] = [named(from, 'a'), named(to, 'b')];
  const same = isSame ? { fromBase: base(to), toBase: base(to) } : undefined;
  expect(baseChange(before, after, imageToBuild(before, after, []))).toEqual(same);
  const [was, will] = [inputs('a', {}, { baseImage: base(from) }), inputs('a', {}, { baseImage: base(to) })];
  const differing = isSame ? undefined : { fromBase: base(from), toBase: base(to) };
  expect(baseChange(was, will, imageToBuild(was, will, []))).toEqual(differing);
});

const found = (digest: string, platforms: Readonly<Record<string, string>> = {}): BaseLookup => ({
  kind: 'found',
  digest: parseDigest(digest),
  platforms: new Map(Object.entries(platforms).map(([name, own]) => [name, parseDigest(own)])),
});
const ARM = `sha256:${'3'.repeat(64)}`;

test.each<[string, BaseLookup, BaseLookup, readonly string[], boolean]>([
  ['one image', found(ONE), found(ONE), [], true],
  ['other images', found(ONE), found(OTHER), ['amd64'], false],
  ['one index', found(ONE, { amd64: ARM }), found(ONE, { amd64: ARM }), ['amd64'], true],
  [
    'indexes with the same image for the nodes',
    found(ONE, { amd64: ARM, arm64: ONE }),
    found(OTHER, { amd64: ARM, arm64: OTHER }),
    ['amd64'],
    true,
  ],
  [
    'indexes with another image for some nodes',
    found(ONE, { amd64: ARM, arm64: ONE }),
    found(OTHER, { amd64: ARM, arm64: OTHER }),
    ['amd64', 'arm64'],
    false,
  ],
  ['indexes without an image for the nodes', found(ONE, { arm64: ARM }), found(OTHER), ['s390x'], false],
  [
    'indexes, for nodes of unknown architectures',
    found(ONE, { a: ARM }),
    found(OTHER, { a: ARM }),
    [],
    false,
  ],
  ['the index of an image', found(ONE), found(OTHER, { amd64: ONE }), ['amd64'], true],
  ['a name that can not be looked up', found(ONE), { kind: 'unknown', why: 'refused' }, ['amd64'], false],
])('tags of %s', (_what, was, will, architectures, isSame) => {
  const named = (tag: string, lookup: BaseLookup): ImageInputs => ({
    ...inputs('a', {}, { baseImage: base(tag) }),
    lookups: new Map([[base(tag), lookup]]),
  });
  const [before, after] = [named(':1', was), named(':2', will)];
  const image = imageToBuild(before, after, architectures);
  const names = { fromBase: baseOf(before), toBase: baseOf(after) };
  expect(baseChange(before, after, image, architectures)).toEqual(isSame ? undefined : names);
});

test('a tag that was moved is another base image, and another image is built', () => {
  const named = inputs('a', {}, { baseImage: base(':1') });
  const before: ImageInputs = { ...named, lookups: new Map([[base(':1'), found(ONE)]]) };
  const after: ImageInputs = { ...named, lookups: new Map([[base(':1'), found(OTHER)]]) };
  const image = imageToBuild(before, after, ['amd64']);
  expect(image?.way).toBe('Append');
  expect(baseChange(before, after, image, ['amd64'])).toEqual({
    fromBase: base(`:1@${ONE}`),
    toBase: base(`:1@${OTHER}`),
  });
});

test('does not take another OS image of standard mode for the same', () => {
  const standard = (rendered: string, tag: string) => ({
    ...inputs(rendered, { osImageURL: base(`${tag}@${ONE}`) }),
    machineOSConfig: undefined,
  });
  expect(baseChange(standard('a', ':1'), standard('b', ':2'), undefined)).toBeUndefined();
});

const naming = (of: ReturnType<typeof inputs>, status: MachineOSConfig['status'] = {}) => {
  const { machineOSConfig } = of;
  const annotations = {
    'machineconfiguration.openshift.io/pre-built-image': 'r.example.com/os/worker@sha256:1',
  };
  const metadata = { ...machineOSConfig.metadata, annotations };
  return { ...of, machineOSConfig: { ...machineOSConfig, metadata, status } };
};
const standard: ImageInputs = { ...inputs('a'), machineOSConfig: undefined };

test.each([
  ['of a pool without one is taken', standard, naming(inputs('a')), 'PreBuilt'],
  [
    'where commands have to run, on what they made',
    standard,
    naming(inputs('a', {}, CONTAINERFILE)),
    'Engine',
  ],
  [
    'is named by a file, and the pool has an image',
    naming(inputs('a'), { currentImagePullSpec: 'x' }),
    naming(inputs('b')),
    'Append',
  ],
  ['of a pool that waits for it', naming(inputs('a')), naming(inputs('b')), 'PreBuilt'],
])('the image made beforehand %s', (_, before, after, way) => {
  const image = imageToBuild(before, after, ['amd64']);
  expect(image?.way).toBe(way);
  expect(image?.why.includes('r.example.com/os/worker@sha256:1 is taken if')).toBe(way !== 'Append');
});
