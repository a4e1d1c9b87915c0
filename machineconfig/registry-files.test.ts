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

/** The warnings of a registries.conf and of the same text as a drop-in. */
function warnings(text: string): readonly string[] {
  const of = (path: string) =>
    parseMachineConfig(file(path, text)).warnings.map(({ reason }) => reason.replace(path, 'FILE'));
  expect(of(`${CONF}.d/50-a.conf`)).toEqual(of(CONF));
  return of(CONF);
}

test.each([
  ['m.io.:5500/', 'm.io.:5500'],
  ['m.io/foo//bar', 'm.io/foo//bar'],
  ['mirror', 'mirror'],
  ['m.io/Foo', 'm.io/Foo'],
  ['m.io/foo:1', 'm.io/foo:1'],
])('a mirror %s ends every pull of its prefix, and the warning names both', (location, shown) => {
  const mirror = (at: string) => `[[registry.mirror]]\nlocation = "${at}"\n`;
  const head = '[[registry]]\nprefix = "r.io/a"\nlocation = "r.io/b"\n';
  expect(warnings(head + mirror('localhost:5000') + mirror(location))).toEqual([
    `ends all pulls from "r.io/a", because in FILE its location "${shown}" can't stand before a repository`,
  ]);
  expect(warnings(head + mirror('localhost:5000'))).toEqual([]);
});

test('a setting of the file below the header of a table has no effect, and the warning names it', () => {
  const text = (tail: string) =>
    `unqualified-search-registries = ["r.io"]\n[[registry]]\nlocation = "r.io"\n${tail}`;
  const mode = 'short-name-mode = "permissive"\n';
  expect(warnings(text(`[[registry.mirror]]\nlocation = "localhost:5000"\n${mode}`))).toEqual([
    'has no effect: FILE has short-name-mode in [[registry.mirror]]',
  ]);
  expect(warnings(text(`Credential-Helpers = []\n${mode}`))).toEqual([
    'has no effect: FILE has credential-helpers in [[registry]]',
    'has no effect: FILE has short-name-mode in [[registry]]',
  ]);
  expect(warnings(mode + text(''))).toEqual([]);
});
