import { expect, test } from 'vitest';
import type { MachineConfig } from '../api/machine-config.ts';
import { parseReference } from '../image/reference.ts';
import { pullSources } from '../image/registry/pull-sources.ts';
import { registriesMachineConfig } from '../machineconfig/registries/machine-config.ts';
import { noRegistries } from '../oci/registries-conf.ts';
import { BuildFailure } from './build-failure.ts';
import { renderedRegistries } from './rendered-registries.ts';

const DIGEST = `sha256:${'a'.repeat(64)}`;

function rendered(files: Readonly<Record<string, string>>): MachineConfig {
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name: 'rendered-worker-1' },
    spec: {
      config: {
        ignition: { version: '3.5.0' },
        storage: {
          files: Object.entries(files).map(([path, text]) => ({
            path,
            contents: { source: `data:,${encodeURIComponent(text)}` },
          })),
        },
      },
    },
  };
}

test('a mirror set of the cluster is where base images are pulled from', () => {
  const made = registriesMachineConfig('worker', {
    icsp: [],
    idms: [
      {
        apiVersion: 'config.openshift.io/v1',
        kind: 'ImageDigestMirrorSet',
        metadata: { name: 'all' },
        spec: {
          imageDigestMirrors: [
            { source: 'r.io', mirrors: ['m.io/r'], mirrorSourcePolicy: 'NeverContactSource' },
          ],
        },
      },
    ],
    itms: [],
    controllerVersion: '1',
  });
  if (!made.ok || made.machineConfig === undefined) throw new Error('no MachineConfig');
  const sources = pullSources(parseReference(`r.io/os@${DIGEST}`), renderedRegistries(made.machineConfig));
  expect(sources).toMatchObject([
    { kind: 'open', reference: { registry: 'm.io', repository: 'r/os' } },
    { kind: 'blocked', by: 'r.io' },
  ]);
});

test('a drop-in takes the place of the main file, and other files say nothing', () => {
  const registries = renderedRegistries(
    rendered({
      '/etc/containers/registries.conf.d/01.conf': '[[registry]]\nlocation = "r.io"\nblocked = true',
      '/etc/containers/registries.conf.d/README': 'none',
      '/etc/containers/registries.conf': '[[registry]]\nlocation = "r.io"',
    }),
  );
  expect([...registries.values()]).toMatchObject([{ scope: 'r.io', blocked: true }]);
});

test('a config without such a file has no rules', () => {
  expect(renderedRegistries(rendered({}))).toEqual(noRegistries);
});

test('a config that can not be read has no rules: whatever else reads it says why', () => {
  const config = rendered({ '/etc/containers/registries.conf': '[[registry]]' });
  const unreadable = { ...config, spec: { config: { ignition: { version: '99.0.0' } } } };
  expect(renderedRegistries(unreadable)).toEqual(noRegistries);
});

test('one that can not be read is a failure that only an admin can fix', () => {
  const broken = rendered({ '/etc/containers/registries.conf': '[[registry]]' });
  expect(() => renderedRegistries(broken)).toThrow(
    /^MachineConfig rendered-worker-1: \/etc\/containers\/registries\.conf: registry 1 has neither prefix nor location/,
  );
  expect(() => renderedRegistries(broken)).toThrow(BuildFailure);
});
