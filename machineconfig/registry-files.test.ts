import { expect, test } from 'vitest';
import type { MachineConfig } from '../api/machine-config.ts';
import { parseMachineConfig } from './parse-machine-config.ts';

const CONF = '/etc/containers/registries.conf';
const file = (path: string, text: string): MachineConfig => ({
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineConfig',
  metadata: { name: 'a', labels: {} },
  spec: {
    config: {
      ignition: { version: '3.4.0' },
      storage: { files: [{ path, contents: { source: `data:,${encodeURIComponent(text)}` } }] },
    },
  },
});
const refused = (path: string, why: string) => [
  {
    path: '$.storage.files[0].contents',
    reason: `would end all pulls, because the container runtime refuses ${path}: ${why}`,
    expected: 'a file that it reads',
  },
];

test.each<[string, string, ReturnType<typeof refused>]>([
  [CONF, '[[registry]]\nlocation = "a.example.org"\n', []],
  [CONF, 'registry = 5', refused(CONF, 'registry is not a list of tables')],
  [`${CONF}.d/50-a.conf`, 'unqualified-search-registries = ["a.example.org"]', []],
  [
    `${CONF}.d/50-a.conf`,
    '[[registry]]\nprefix = "*.a.example.org:5000"',
    refused(`${CONF}.d/50-a.conf`, 'registry *.a.example.org:5000 is a wildcard with more than a domain'),
  ],
  // The runtime reads *.conf alone.
  [`${CONF}.d/notes`, 'registry = 5', []],
  ['/etc/app/registries.conf', 'registry = 5', []],
  ['/etc/containers/policy.json', '{"default": [{"type": "signedBy"}]}', []],
  ['/etc/containers/policy.json', 'default: reject', refused('/etc/containers/policy.json', 'is not JSON')],
])('%s with %j has the warnings %j', (path, text, warnings) => {
  expect(parseMachineConfig(file(path, text))).toMatchObject({ problems: [], warnings });
});
