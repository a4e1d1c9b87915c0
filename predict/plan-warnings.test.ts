import { expect, test } from 'vitest';
import type { MachineConfigNodeStatus } from '../api/machine-config-node.ts';
import { parseDigest } from '../api/references.ts';
import type { BaseContent, BaseEntry } from '../machineconfig/base-tree.ts';
import { emptyNodeConfig, type NodeConfig } from '../machineconfig/node-config.ts';
import { aMachineOSConfig, aRenderedConfig } from '../test/fixtures/objects.ts';
import { machineConfigNode } from '../test/fixtures/observed-cluster.ts';
import type { BaseLookup, BaseLookups } from './image/base-lookup.ts';
import type { ImageInputs } from './image/image-inputs.ts';
import type { ImageToBuild } from './image/image-to-build.ts';
import { absentUnits, baseRemarks, imageReboots } from './plan-warnings.ts';

const DIGEST = parseDigest(`sha256:${'1'.repeat(64)}`);
const found: BaseLookup = { kind: 'found', digest: DIGEST, platforms: new Map() };
const refused: BaseLookup = { kind: 'unknown', why: 'r.test: connection refused' };
const [ONE, TWO] = ['r.test/os:1', 'r.test/os:2'];

function inputs(baseImage: string | undefined, lookups: BaseLookups): ImageInputs {
  const config = aMachineOSConfig('worker');
  const machineOSConfig =
    baseImage === undefined ? undefined : { ...config, spec: { ...config.spec, baseImage } };
  return { rendered: aRenderedConfig('rendered-worker-1'), machineOSConfig, policyDigest: '', lookups };
}

test.each<[string, string | undefined, string | undefined, Record<string, BaseLookup>, string[]]>([
  ['a pool that is not layered', ONE, undefined, {}, []],
  ['names by digest', `${ONE}@${DIGEST}`, `${TWO}@${DIGEST}`, {}, []],
  ['a tag that stays, without a registry', ONE, ONE, {}, []],
  ['a tag that stays and was looked up', ONE, ONE, { [ONE]: found }, []],
  [
    'a tag that stays and can not be looked up',
    ONE,
    ONE,
    { [ONE]: refused },
    [
      "base image r.test/os:1 can't be looked up, so it is assumed that its tag was not moved: r.test: connection refused",
    ],
  ],
  ['tags that were looked up', ONE, TWO, { [ONE]: found, [TWO]: found }, []],
  [
    'tags of which one can not be looked up',
    ONE,
    TWO,
    { [ONE]: found, [TWO]: refused },
    [
      'the digest of base image r.test/os:2 is not known, so a reboot is planned for it: r.test: connection refused',
    ],
  ],
  [
    'tags, without a registry',
    `${ONE}@${DIGEST}`,
    TWO,
    {},
    [
      'the digest of base image r.test/os:2 is not known, so a reboot is planned for it: no registry was asked (--resolve-tags asks)',
    ],
  ],
  [
    'a pool that opts in by a tag that can not be looked up',
    undefined,
    ONE,
    { [ONE]: refused },
    [
      'the digest of base image r.test/os:1 is not known, so a reboot is planned for it: r.test: connection refused',
    ],
  ],
])('what is not known of %s', (_what, from, to, answers, lines) => {
  const asked = new Map(Object.entries(answers));
  expect(baseRemarks(inputs(from, asked), inputs(to, asked), asked)).toEqual(lines);
});

const directory: BaseEntry = { kind: 'directory', mode: 0o755, uid: 0, gid: 0, isEmpty: false };
const entries: Readonly<Record<string, BaseEntry>> = {
  '/usr': directory,
  '/usr/lib': directory,
  '/usr/lib/systemd': directory,
  '/etc': directory,
  '/usr/lib/systemd/system': directory,
  '/usr/lib/systemd/system/chronyd.service': { kind: 'file' },
  '/usr/lib/systemd/system/app@.service': { kind: 'file' },
  '/etc/init.d': directory,
  '/etc/init.d/legacy': { kind: 'file' },
};
const base: BaseContent = { at: (path) => entries[path], users: new Map(), groups: new Map() };
const own = (contents?: string): NodeConfig => ({
  ...emptyNodeConfig,
  units: new Map([
    [
      'own.service',
      { name: 'own.service', masked: false, dropins: new Map(), ...(contents && { contents }) },
    ],
  ]),
});

test.each([
  ['the base image has', 'chronyd.service', emptyNodeConfig, false],
  ['the base image has as a template', 'app@one.service', emptyNodeConfig, false],
  ['the base image has as a SysV script', 'legacy.service', emptyNodeConfig, false],
  ['the config has', 'own.service', own('[Service]'), false],
  ['the config only has drop-ins of', 'own.service', own(), true],
  ['is nowhere', 'crond.service', emptyNodeConfig, true],
])('a unit that %s: %s', (_, service, config, isAbsent) => {
  const warnings = absentUnits([{ type: 'Restart', service }, { type: 'Drain' }], [config], base);
  expect(warnings).toEqual(isAbsent ? [expect.stringContaining(`a policy names ${service}, of which`)] : []);
});

const live = { actions: [{ type: 'DaemonReload' }], causes: [] } as const;
const reboot = { actions: [{ type: 'Reboot' }], causes: [] } as const;
const bootc: MachineConfigNodeStatus = { osBackend: { name: 'bootc', appliesLive: false } };
const ostree: MachineConfigNodeStatus = { osBackend: { name: 'ostree' } };
const image: ImageToBuild = { way: 'Append', why: 'the config changes', problems: [] };

test('names nodes that reboot for an image, where the change itself asks for less', () => {
  const nodes = [
    machineConfigNode('b', bootc),
    machineConfigNode('a', bootc),
    machineConfigNode('c', ostree),
    machineConfigNode('d', undefined),
  ];
  expect(imageReboots(image, live, nodes)).toEqual([
    "counted as a reboot: nodes a, b: bootc can't apply an image to the running system on this host",
  ]);
  expect(imageReboots(image, reboot, nodes)).toEqual([]);
  expect(imageReboots(undefined, live, nodes)).toEqual([]);
});
