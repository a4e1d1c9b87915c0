import { describe, expect, test } from 'vitest';
import type { EngineSpec } from '../../predict/image/engine-spec.ts';
import { effectiveContainerfile } from './containerfile.ts';

const nothing: EngineSpec = {
  containerfile: '',
  extensions: [],
  extensionsImage: '',
  kernelType: 'default',
  packages: [],
  buildArguments: {},
  buildSecrets: [],
};
const file = (engineSpec: Partial<EngineSpec>, extensionsImage = '') =>
  effectiveContainerfile('shale.local/base:1', { ...nothing, ...engineSpec }, extensionsImage);

describe('the Containerfile that an engine is given', () => {
  test("begins with the stage that the user's stages build on", () => {
    expect(file({ containerfile: 'FROM configs AS final\nRUN true\n\n' })).toBe(
      'FROM shale.local/base:1 AS configs\nFROM configs AS final\nRUN true\n',
    );
    expect(file({ containerfile: 'RUN true' })).toBe('FROM shale.local/base:1 AS configs\nRUN true\n');
  });

  test('installs extensions from their image, which leaves nothing behind', () => {
    const text = file({ extensions: ['kerberos', 'usbguard'] }, 'shale.local/base:2');
    expect(text).toContain('FROM shale.local/base:2 AS extensions\nFROM shale.local/base:1 AS configs\n');
    expect(text).toContain('RUN --mount=type=bind,from=extensions,');
    expect(text).toContain(
      'rpm-ostree install krb5-workstation libkadm5 usbguard && rm /etc/yum.repos.d/coreos-extensions.repo',
    );
  });

  test('switches the kernel before it installs packages', () => {
    const text = file({ kernelType: 'realtime', packages: ['htop'] });
    const [kernel, packages] = ['override remove kernel ', 'dnf -y install htop'].map((part) =>
      text.indexOf(part),
    );
    expect(kernel).toBeGreaterThan(0);
    expect(packages).toBeGreaterThan(kernel ?? 0);
  });

  test('makes the directories that apt needs before it runs, and leaves no packages behind', () => {
    const run = file({ packages: ['htop'] });
    const [made, updated, cleaned] = [
      'mkdir -p /var/lib/apt/lists/partial /var/cache/apt/archives/partial',
      'apt-get update',
      'apt-get clean',
    ].map((part) => run.indexOf(part));
    expect(made).toBeGreaterThan(0);
    expect(updated).toBeGreaterThan(made ?? 0);
    expect(cleaned).toBeGreaterThan(run.indexOf('install --no-install-recommends htop'));
  });

  test('takes another kernel from the extensions image, where a MachineConfig names one', () => {
    const runs = file({ extensions: ['usbguard'], kernelType: 'realtime' }, 'shale.local/base:2')
      .split('\n')
      .filter((line) => line.startsWith('RUN '));
    expect(runs).toHaveLength(2);
    for (const run of runs) {
      expect(run).toMatch(/^RUN --mount=type=bind,from=extensions,/);
      expect(run).toMatch(/ && rm \/etc\/yum.repos.d\/coreos-extensions.repo$/);
    }
    expect(file({ kernelType: 'realtime' })).not.toContain('--mount');
  });

  test('keeps the kernel of a base image that has it', () => {
    expect(file({ kernelType: '64k-pages' })).toContain(
      '{ rpm -q --quiet kernel-64k-core || rpm-ostree override remove kernel ',
    );
  });

  test('there is none for an unknown kernel', () => {
    expect(() => file({ kernelType: 'zen' })).toThrow('expected default, realtime, 64k-pages');
  });
});
