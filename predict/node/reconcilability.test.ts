import { describe, expect, test } from 'vitest';
import type { MachineConfig } from '../../api/machine-config.ts';
import type { StorageOverride } from '../../api/machine-configuration.ts';
import { DEFAULT_LIMITS } from '../../machineconfig/ignition/contents.ts';
import { type NodeToReconcile, reconcilability } from './irreconcilable-nodes.ts';

const PLAIN = 'rendered-worker-1';
const DISKS = 'rendered-infra-1';
const SAME_DISKS = 'rendered-infra-2';

function config(name: string, disks: readonly string[]): MachineConfig {
  const storage = { disks: disks.map((device) => ({ device, wipeTable: true })) };
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name },
    spec: { config: { ignition: { version: '3.5.0' }, storage } },
  };
}

const configs = new Map(
  [config(PLAIN, []), config(DISKS, ['/dev/sda']), config(SAME_DISKS, ['/dev/sda'])].map((each) => [
    each.metadata.name,
    each,
  ]),
);
const inputs = {
  configOf: (name: string) => configs.get(name),
  sourcesOf: (name: string) => (name === PLAIN ? [] : [config('50-disks', ['/dev/sda'])]),
  limits: DEFAULT_LIMITS,
  nodeUser: 'core',
  overrides: new Set<StorageOverride>(),
};

describe('a node', () => {
  test.each<[string, Partial<NodeToReconcile>, boolean]>([
    ['that has no config', {}, false],
    ['that has reported none', { running: '' }, false],
    ['of another pool', { running: PLAIN }, false],
    ['that runs a config that no longer exists', { running: 'rendered-worker-0' }, false],
    ['that runs the target', { running: DISKS }, true],
    ['that runs a config with the same disks', { running: SAME_DISKS }, true],
    ['that was provisioned with the target', { provisioned: DISKS }, true],
    ['of another pool that was provisioned with the target', { running: PLAIN, provisioned: DISKS }, true],
    ['that was provisioned with an earlier config with the same disks', { provisioned: SAME_DISKS }, true],
    ['that was provisioned with an earlier config', { provisioned: PLAIN }, false],
    ['that was provisioned with a config that no longer exists', { provisioned: 'rendered-infra-0' }, false],
    ['that was updated since it was provisioned', { running: PLAIN, provisioned: SAME_DISKS }, false],
  ])('%s: %j, may have a config with disks: %s', (_what, node, may) => {
    const why = reconcilability(inputs)({
      running: undefined,
      provisioned: undefined,
      target: DISKS,
      ...node,
    });
    expect(why === undefined).toBe(may);
  });

  test('reads what is wrong, in which MachineConfig, and what to do', () => {
    const why = reconcilability(inputs)({ running: undefined, provisioned: undefined, target: DISKS });
    expect(why).toBe(
      `${DISKS} can't be applied to a running node, because only Ignition sets this up, at the first boot: MachineConfig 50-disks: $.storage.disks: disks can not change on a running node; expected the same as the nodes run; to change it, replace the nodes. Provision the node again or, if Ignition provisioned it with ${DISKS}, set its annotation shale.dev/provisioned-config to that name`,
    );
  });

  test('may have a target that does not exist: nothing of it is staged', () => {
    const why = reconcilability(inputs);
    expect(why({ running: undefined, provisioned: undefined, target: 'rendered-infra-9' })).toBeUndefined();
  });
});

test('an override permits other disks on a node that runs a config, and on no new one', () => {
  const overrides = new Set<StorageOverride>(['Disks']);
  const why = reconcilability({ ...inputs, overrides });
  expect(why({ running: PLAIN, provisioned: undefined, target: DISKS })).toBeUndefined();
  expect(why({ running: undefined, provisioned: undefined, target: DISKS })).toContain('$.storage.disks');
  const other = reconcilability({ ...inputs, overrides: new Set<StorageOverride>(['Raid', 'FileSystems']) });
  expect(other({ running: PLAIN, provisioned: undefined, target: DISKS })).toContain('$.storage.disks');
});

test('a pair of configs is compared once, however many nodes have it, and again when a config is another object', () => {
  let compared = 0;
  const counting = {
    ...inputs,
    sourcesOf: () => {
      compared += 1;
      return [];
    },
  };
  const known = new WeakMap();
  const node = { running: PLAIN, provisioned: undefined, target: DISKS };
  reconcilability(counting, known)(node);
  reconcilability(counting, known)({ ...node });
  reconcilability(counting, known)({ ...node, target: PLAIN });
  expect(compared).toBe(1);
  const replaced = { ...counting, configOf: (name: string) => structuredClone(configs.get(name)) };
  reconcilability(replaced, known)(node);
  expect(compared).toBe(2);
});
