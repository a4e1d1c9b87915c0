import { expect, test } from 'vitest';
import type { MachineConfig, MachineConfigSpec } from '../../api/machine-config.ts';
import type { MachineOSConfig, MachineOSConfigSpec } from '../../api/machine-os-config.ts';
import { baseChange, type ImageInputs, imageToBuild } from './image-to-build.ts';

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
