import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { MachineConfig } from '../../api/machine-config.ts';
import {
  ContainerfileError,
  type EngineInputs,
  engineImageName,
  engineSpecOf,
  PackageNameError,
  readsTree,
} from './engine-spec.ts';

const rendered = (spec: Partial<MachineConfig['spec']> = {}): MachineConfig => ({
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineConfig',
  metadata: { name: 'rendered-worker-0' },
  spec: { ...spec },
});
const file = (containerfileArch: 'NoArch' | 'ARM64', content: string) => ({ containerfileArch, content });

describe('an engine is needed', () => {
  test.each([
    ['for nothing', undefined, {}, false],
    ['not for an empty Containerfile', { containerFile: [file('NoArch', ' \n')] }, {}, false],
    ['not for the default kernel', {}, { kernelType: 'default' }, false],
    ['for a Containerfile', { containerFile: [file('NoArch', 'RUN true')] }, {}, true],
    ['not for one of another architecture', { containerFile: [file('ARM64', 'RUN true')] }, {}, false],
    ['for packages', { packages: ['htop'] }, {}, true],
    ['for extensions', {}, { extensions: ['usbguard'] }, true],
    ['for another kernel', {}, { kernelType: 'realtime' }, true],
  ])('%s', (_, spec, config, needed) => {
    expect(engineSpecOf(spec, rendered(config), 'amd64') !== undefined).toBe(needed);
  });

  test('the Containerfile of an architecture comes before the one for all', () => {
    const spec = { containerFile: [file('NoArch', 'RUN all'), file('ARM64', 'RUN arm')] };
    expect(engineSpecOf(spec, rendered(), 'arm64')?.containerfile).toBe('RUN arm');
    expect(engineSpecOf(spec, rendered(), 'amd64')?.containerfile).toBe('RUN all');
  });

  test.each([
    ['extensions', { extensions: ['usbguard'] }, 'r.example.com/extensions:1'],
    ['another kernel', { kernelType: 'realtime' }, 'r.example.com/extensions:1'],
    ['neither', { kernelType: 'default' }, ''],
  ])('the extensions image is for %s', (_, config, image) => {
    const engineSpec = engineSpecOf(
      { packages: ['htop'] },
      rendered({ ...config, baseOSExtensionsContainerImage: 'r.example.com/extensions:1' }),
      'amd64',
    );
    expect(engineSpec?.extensionsImage).toBe(image);
  });

  test('a Containerfile that no engine can read is refused, of the architecture alone', () => {
    const containerFile = [
      { containerfileArch: 'AMD64' as const, content: 'RUNN true' },
      { containerfileArch: 'ARM64' as const, content: 'RUN true' },
    ];
    expect(() => engineSpecOf({ containerFile }, rendered(), 'amd64')).toThrow(ContainerfileError);
    expect(engineSpecOf({ containerFile }, rendered(), 'arm64')?.containerfile).toBe('RUN true');
  });

  test('a Containerfile of one architecture is named by it, and one for all by no more than its field', () => {
    const containerFile = [
      { containerfileArch: 'ARM64' as const, content: 'RUNN true' },
      { containerfileArch: 'NoArch' as const, content: 'RUNN false' },
    ];
    const made = (architecture: string) => () => engineSpecOf({ containerFile }, rendered(), architecture);
    expect(made('arm64')).toThrow(/^containerFile of ARM64: .*RUNN/);
    expect(made('amd64')).toThrow(/^containerFile: .*RUNN/);
  });

  test('a package name that a shell would read as more is refused', () => {
    for (const name of ['a;b', '$(id)', '-y', 'a b', 'a\nb', '../a', '`id`']) {
      expect(() => engineSpecOf({ packages: [name] }, rendered(), 'amd64')).toThrow(PackageNameError);
      expect(() => engineSpecOf({}, rendered({ extensions: [name] }), 'amd64')).toThrow(PackageNameError);
    }
  });
});

describe('the name of an engine image', () => {
  const inputs: EngineInputs = {
    containerfile: 'RUN true',
    extensions: [],
    extensionsImage: '',
    kernelType: 'default',
    packages: [],
    buildArguments: {},
    buildSecrets: [],
    baseImage: `r.example.com/os@sha256:${'a'.repeat(64)}`,
    architecture: 'amd64',
    renderedConfig: '',
    rebuild: '',
    pool: 'worker',
  };
  const name = (more: Partial<EngineInputs>) =>
    engineImageName('r.example.com/os/worker:x', { ...inputs, ...more });

  test('lies in the repository of the pool, whatever the tag of its images', () => {
    expect(name({})).toMatch(/^r\.example\.com\/os\/worker:engine-[0-9a-f]{32}$/);
    expect(engineImageName('r.example.com/os/worker:y', inputs)).toBe(name({}));
  });

  test('is another one for each input that is another', () => {
    const others: Partial<EngineInputs>[] = [
      { containerfile: 'RUN false' },
      { extensions: ['x'] },
      { extensionsImage: 'x' },
      { kernelType: 'realtime' },
      { packages: ['x'] },
      { buildArguments: { A: 'b' } },
      { buildSecrets: ['x'] },
      { baseImage: `r.example.com/os@sha256:${'b'.repeat(64)}` },
      { architecture: 'arm64' },
      { renderedConfig: 'rendered-worker-1' },
      { rebuild: 'today' },
      { pool: 'infra' },
    ];
    const names = [{}, ...others].map(name);
    expect(new Set(names).size).toBe(names.length);
  });
});

describe('a Containerfile reads the tree of the config', () => {
  test.each([
    ['COPY machineconfig/etc/a /etc/a', true],
    ['ADD ./machineconfig /x', true],
    ['COPY --chown=1:1 machineconfig/etc/a /a', true],
    ['COPY ["machineconfig/etc/a", "/a"]', true],
    ['copy machineconfig/a /a', true],
    ['COPY . /x', true],
    ['COPY mach* /x', true],
    ['COPY \\\n  machineconfig/a \\\n  /a', true],
    ['COPY --from=configs /machineconfig /x', false],
    ['RUN echo machineconfig/a', false],
    ['COPY other /machineconfig', false],
    ['# COPY machineconfig/a /a', false],
  ])('%j: %s', (text, reads) => {
    expect(readsTree(`FROM configs\n${text}\n`)).toBe(reads);
  });

  test('whatever stands in it is read without trouble', () => {
    fc.assert(fc.property(fc.string(), (text) => typeof readsTree(text) === 'boolean'));
  });
});
