import fc from 'fast-check';
import { expect, test } from 'vitest';
import { everything, machineObjects } from '../../test/fixtures/capi/machine-objects.ts';
import {
  isJsonObject,
  type Json,
  type JsonObject,
  type MachineObjects,
} from '../contract/machine-objects.ts';
import { readMachineSettings } from '../contract/settings.ts';
import { changedParts } from './part-changes.ts';
import { machinePartsOf } from './parts-of.ts';
import { patchesBetween, type SpecPlace } from './patches.ts';

/** RFC 7386, section 2, as its pseudocode has it. */
function mergePatch(target: Json | undefined, patch: Json): Json {
  if (!isJsonObject(patch)) return patch;
  const merged: Record<string, Json> = isJsonObject(target) ? { ...target } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete merged[name];
    else merged[name] = mergePatch(merged[name], value);
  }
  return merged;
}

const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
/** JSON has no undefined. */
const json = <T>(arbitrary: fc.Arbitrary<T>) =>
  arbitrary.map((value): JsonObject => JSON.parse(JSON.stringify(value)));

const file = fc.record({
  path: fc.constantFrom('/etc/a', '/etc/b', '/etc/chrony.conf', '/etc/../x'),
  content: optional(fc.constantFrom('', 'a\n', 'YQ==')),
  encoding: optional(fc.constantFrom('base64', 'gzip')),
  permissions: optional(fc.constantFrom('0644', '0600', 'rw')),
  owner: optional(fc.constantFrom('root:root', 'chrony', '0:0')),
  append: optional(fc.boolean()),
  contentFrom: optional(fc.constant({ secret: { name: 'a', key: 'b' } })),
});
const user = fc.record({
  name: fc.constantFrom('core', 'eve'),
  shell: optional(fc.constantFrom('/bin/sh')),
  sshAuthorizedKeys: optional(fc.array(fc.constantFrom('ssh-ed25519 A a', 'ssh-ed25519 B b', ' '))),
});
const ntp = fc.record({
  enabled: optional(fc.boolean()),
  servers: optional(fc.array(fc.constantFrom('a.example', 'b.example', 'no server'))),
});
const machines: fc.Arbitrary<MachineObjects> = fc.record({
  machine: json(
    fc.record({
      clusterName: fc.constant('one'),
      version: optional(fc.constantFrom('v1.35.0', 'v1.35.1', 'latest')),
      failureDomain: optional(fc.constantFrom('a')),
    }),
  ),
  bootstrap: fc.record({
    kind: fc.constantFrom('KubeadmConfig', 'KubeadmConfig', 'KubeadmConfig', 'OtherConfig'),
    spec: json(
      fc.record({
        files: optional(fc.array(file, { maxLength: 3 })),
        users: optional(fc.array(user, { maxLength: 2 })),
        ntp: optional(ntp),
        mounts: optional(fc.constant([['a']])),
      }),
    ),
  }),
  infrastructure: fc.record({
    kind: fc.constant('DevMachine'),
    spec: json(fc.record({ image: optional(fc.constantFrom('v1', 'v2', 'a b')), size: optional(fc.nat(1)) })),
  }),
});

/** Mostly a few changes of one another: of two that are random, something is nearly always refused. */
const pairs = fc
  .tuple(machines, machines, fc.array(fc.constantFrom('files', 'users', 'ntp', 'mounts', 'version', 'image')))
  .map(([current, other, fields]): [MachineObjects, MachineObjects] => {
    const take = (from: JsonObject, to: JsonObject) => {
      const kept = Object.entries(from).filter(([field]) => !fields.includes(field as never));
      const taken = Object.entries(to).filter(([field]) => fields.includes(field as never));
      return Object.fromEntries([...kept, ...taken]);
    };
    const { machine, bootstrap, infrastructure } = current;
    return [
      current,
      {
        machine: take(machine, other.machine),
        bootstrap: bootstrap && { ...bootstrap, spec: take(bootstrap.spec, other.bootstrap?.spec ?? {}) },
        infrastructure: { ...infrastructure, spec: take(infrastructure.spec, other.infrastructure.spec) },
      },
    ];
  });

const nest = (spec: JsonObject, place: SpecPlace): JsonObject =>
  place === 'machine' ? { spec } : { spec: { template: { spec } } };
const apply = (spec: JsonObject, patch: string | undefined, place: SpecPlace) =>
  mergePatch(nest(spec, place), patch === undefined ? {} : (JSON.parse(patch) as Json));

test.each<SpecPlace>(['machine', 'template'])(
  'patches of a %s make desired of current where nothing is refused',
  (place) => {
    let inPlace = 0;
    fc.assert(
      fc.property(pairs, ([current, desired]) => {
        const { refused, taken } = changedParts(
          machinePartsOf(current, everything),
          machinePartsOf(desired, everything),
        );
        if (refused.length > 0) return;
        if (taken.length > 0) inPlace += 1;
        const patches = patchesBetween(current, desired, everything, place);
        expect(apply(current.machine, patches.machine, place)).toEqual(nest(desired.machine, place));
        expect(apply(current.bootstrap?.spec ?? {}, patches.bootstrap, place)).toEqual(
          nest(desired.bootstrap?.spec ?? {}, place),
        );
        expect(apply(current.infrastructure.spec, patches.infrastructure, place)).toEqual(
          nest(desired.infrastructure.spec, place),
        );
        expect(patchesBetween(reordered(current), reordered(desired), everything, place)).toEqual(patches);
      }),
      { numRuns: 2000 },
    );
    expect(inPlace).toBeGreaterThan(50);
  },
);

/** The same objects with their fields in another order. */
function reordered({ machine, bootstrap, infrastructure }: MachineObjects): MachineObjects {
  return {
    machine: backwards(machine),
    bootstrap: bootstrap && { ...bootstrap, spec: backwards(bootstrap.spec) },
    infrastructure: { ...infrastructure, spec: backwards(infrastructure.spec) },
  };
}

function backwards(object: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(object)
      .toReversed()
      .map(([field, value]) => [field, isJsonObject(value) ? backwards(value) : value]),
  );
}

test.each<[string, JsonObject, JsonObject, JsonObject | undefined]>([
  [
    'another tag',
    { disk: { image: 'v1', gib: 9 } },
    { disk: { image: 'v2', gib: 9 } },
    { disk: { image: 'v2' } },
  ],
  ['the first tag', { disk: { gib: 9 } }, { disk: { image: 'v1', gib: 9 } }, { disk: { image: 'v1' } }],
  ['no tag any more', { disk: { image: 'v1' } }, { disk: {} }, { disk: { image: null } }],
  ['the same tag', { disk: { image: 'v1' } }, { disk: { image: 'v1' } }, undefined],
])('an image below other fields is patched alone: %s', (_what, from, to, expected) => {
  const settings = readMachineSettings({
    imagePath: 'spec.template.spec.disk.image',
    imageRepository: 'registry.example/os',
  });
  const [current, desired] = [
    machineObjects({ infrastructure: from }),
    machineObjects({ infrastructure: to }),
  ];
  const { infrastructure } = patchesBetween(current, desired, settings, 'machine');
  expect(infrastructure === undefined ? undefined : JSON.parse(infrastructure)).toEqual(
    expected && { spec: expected },
  );
});

test('nothing differs between a machine and itself, and its patches are empty', () => {
  fc.assert(
    fc.property(machines, (objects) => {
      const same = reordered(objects);
      const changes = changedParts(machinePartsOf(objects, everything), machinePartsOf(same, everything));
      expect(changes).toEqual({ taken: [], refused: [] });
      expect(patchesBetween(objects, same, everything, 'template')).toEqual({
        machine: undefined,
        bootstrap: undefined,
        infrastructure: undefined,
      });
    }),
  );
});
