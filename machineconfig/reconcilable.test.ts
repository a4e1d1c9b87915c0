import { describe, expect, it } from 'vitest';
import type { MachineConfig, MachineConfigSpec } from '../api/machine-config.ts';
import type { StorageOverride } from '../api/machine-configuration.ts';
import { irreconcilable, irreconcilableOnNode } from './reconcilable.ts';
import { renderPool } from './render.ts';
import { file, ignition, machineConfig, pool } from './testdata/build.ts';

const base = machineConfig('00-base', ignition({ storage: { files: [file('/a', '1')] } }));

function rendered(...configs: MachineConfig[]): MachineConfig {
  const rendering = renderPool({ pool: pool('worker'), configs, controllerVersion: 'v1' });
  if (!rendering.ok) throw new Error(JSON.stringify(rendering.problems));
  return rendering.rendered;
}

/** @returns the problems of an update from the base with `before` to the base with `after`. */
function refused(before: MachineConfig | undefined, after: MachineConfig | undefined) {
  const sources = after === undefined ? [base] : [base, after];
  const running = before === undefined ? rendered(base) : rendered(base, before);
  return irreconcilable({ running, target: rendered(...sources), sources }).map(
    ({ machineConfig, problems }) => [machineConfig, ...problems.map(({ path }) => path)],
  );
}

function change(sections: object, spec: Partial<MachineConfigSpec> = {}): MachineConfig {
  return machineConfig('50-change', ignition(sections), spec);
}

const user = (name: string, fields: object = {}) => ({ passwd: { users: [{ name, ...fields }] } });

describe('changes that a running node can not apply', () => {
  it.each([
    ['disks', { storage: { disks: [{ device: '/dev/sda', wipeTable: true }] } }, '$.storage.disks'],
    [
      'filesystems',
      { storage: { filesystems: [{ device: '/dev/sda', format: 'xfs' }] } },
      '$.storage.filesystems',
    ],
    ['RAID', { storage: { raid: [{ name: 'r', level: '1', devices: ['/dev/sda'] }] } }, '$.storage.raid'],
    ['LUKS', { storage: { luks: [{ name: 'l', device: '/dev/sda' }] } }, '$.storage.luks'],
    ['directories', { storage: { directories: [{ path: '/d' }] } }, '$.storage.directories'],
    ['links', { storage: { links: [{ path: '/l', target: '/x' }] } }, '$.storage.links'],
    ['groups', { passwd: { groups: [{ name: 'g' }] } }, '$.passwd.groups'],
    [
      "Ignition's kernel arguments",
      { kernelArguments: { shouldExist: ['x'] } },
      '$.kernelArguments.shouldExist',
    ],
    ['another user', user('admin', { sshAuthorizedKeys: ['k'] }), '$.passwd.users[0]'],
    [
      'other fields of core',
      user('core', { sshAuthorizedKeys: ['k'], shell: '/bin/zsh' }),
      '$.passwd.users[0]',
    ],
    ['core without anything', user('core'), '$.passwd.users[0]'],
    [
      'the force file',
      { storage: { files: [file('/run/machine-config-daemon-force', '')] } },
      '$.storage.files[1].path',
    ],
  ])('%s, named with the MachineConfig', (_, sections, path) => {
    expect(refused(undefined, change(sections))).toEqual([['50-change', path]]);
    expect(refused(change(sections), change(sections))).toEqual(
      path.startsWith('$.storage.files[') ? [['50-change', path]] : [],
    );
  });

  it('FIPS, on or off', () => {
    const fips = change({}, { fips: true });
    expect(refused(undefined, fips)).toEqual([['50-change', 'spec.fips']]);
    expect(refused(fips, undefined)).toEqual([['', 'spec.fips']]);
  });

  it('removed disks, which no MachineConfig contains any more', () => {
    expect(refused(change({ storage: { disks: [{ device: '/dev/sda' }] } }), undefined)).toEqual([
      ['', '$.storage.disks'],
    ]);
  });

  it('everything at once', () => {
    const sections = {
      storage: { disks: [{ device: '/dev/sda' }], directories: [{ path: '/d' }] },
      ...user('admin'),
    };
    expect(refused(undefined, change(sections, { fips: true }))).toHaveLength(4);
  });
});

describe('what a node can not apply while it runs', () => {
  const onNode = (running: MachineConfig | undefined, asked: MachineConfig) => {
    const sources = [base, asked];
    return irreconcilableOnNode({ running, target: rendered(...sources), sources }).map(
      ({ machineConfig, problems }) => [machineConfig, ...problems.map(({ path }) => path)],
    );
  };

  it.each([
    ['disks', { storage: { disks: [{ device: '/dev/sda' }] } }, '$.storage.disks'],
    [
      'file systems',
      { storage: { filesystems: [{ device: '/dev/sda', format: 'xfs' }] } },
      '$.storage.filesystems',
    ],
    ['RAID', { storage: { raid: [{ name: 'r', level: '1', devices: ['/dev/sda'] }] } }, '$.storage.raid'],
    ['LUKS', { storage: { luks: [{ name: 'l', device: '/dev/sda' }] } }, '$.storage.luks'],
    ['groups', { passwd: { groups: [{ name: 'g' }] } }, '$.passwd.groups'],
    ['another user', user('admin', { sshAuthorizedKeys: ['k'] }), '$.passwd.users[0]'],
    [
      "Ignition's kernel arguments",
      { kernelArguments: { shouldExist: ['x'] } },
      '$.kernelArguments.shouldExist',
    ],
  ])('%s of its first config, and of another pool', (_what, sections, path) => {
    expect(onNode(undefined, change(sections))).toEqual([['50-change', path]]);
    expect(onNode(rendered(base), change(sections))).toEqual([['50-change', path]]);
    expect(onNode(rendered(base, change(sections)), change(sections))).toEqual([]);
  });

  it('FIPS mode, with which a node is installed', () => {
    expect(onNode(undefined, change({}, { fips: true }))).toEqual([['50-change', 'spec.fips']]);
  });

  it.each([
    ['files', { storage: { files: [file('/b', '2')] } }],
    ['directories', { storage: { directories: [{ path: '/d' }] } }],
    ['links', { storage: { links: [{ path: '/l', target: '/x' }] } }],
    ['keys of core', user('core', { sshAuthorizedKeys: ['k'] })],
  ])('but not %s, which Shale writes', (_what, sections) => {
    expect(onNode(undefined, change(sections))).toEqual([]);
    expect(onNode(rendered(base), change(sections))).toEqual([]);
  });
});

describe('changes that a running node can apply', () => {
  it.each([
    ['files', { storage: { files: [file('/a', '2'), file('/b', '')] } }],
    ['units', { systemd: { units: [{ name: 'a.service', enabled: true }] } }],
    ['keys of core', user('core', { sshAuthorizedKeys: ['k'] })],
    ['a password of core', user('core', { passwordHash: 'x' })],
  ])('%s', (_, sections) => {
    expect(refused(undefined, change(sections))).toEqual([]);
    expect(refused(change(sections), undefined)).toEqual([]);
  });

  it('keys of the user that the nodes have in place of core', () => {
    const changed = change(user('debian', { sshAuthorizedKeys: ['k'] }));
    const sources = [base, changed];
    const update = { running: rendered(base), target: rendered(...sources), sources };
    expect(irreconcilable(update, { nodeUser: 'debian' })).toEqual([]);
    expect(irreconcilable(update)).toHaveLength(1);
  });

  it('removed links', () => {
    expect(refused(change({ storage: { links: [{ path: '/l', target: '/x' }] } }), undefined)).toEqual([]);
  });

  it('kernel arguments, kernel type, extensions and OS image', () => {
    const spec = {
      kernelArguments: ['x'],
      kernelType: 'realtime',
      extensions: ['usbguard'],
      osImageURL: 'x',
    };
    expect(refused(undefined, change({}, spec))).toEqual([]);
  });
});

describe('overrides of spec.irreconcilableValidationOverrides', () => {
  const storage = {
    disks: [{ device: '/dev/sda', wipeTable: true }],
    filesystems: [{ device: '/dev/sda', format: 'xfs' }],
    raid: [{ name: 'r', level: '1', devices: ['/dev/sda'] }],
    luks: [{ name: 'l', device: '/dev/sda' }],
  };
  const update = { running: rendered(base), target: rendered(base, change({ storage })), sources: [] };
  const left = (...overrides: StorageOverride[]) =>
    irreconcilable(update, { overrides: new Set(overrides) }).flatMap(({ problems }) =>
      problems.map(({ path }) => path),
    );

  it.each<[StorageOverride[], string[]]>([
    [[], ['$.storage.disks', '$.storage.filesystems', '$.storage.raid', '$.storage.luks']],
    [['Disks'], ['$.storage.filesystems', '$.storage.raid', '$.storage.luks']],
    [['FileSystems'], ['$.storage.disks', '$.storage.raid', '$.storage.luks']],
    [['Disks', 'FileSystems', 'Raid'], ['$.storage.luks']],
  ])('%j leaves %j', (overrides, paths) => {
    expect(left(...overrides)).toEqual(paths);
  });
});
