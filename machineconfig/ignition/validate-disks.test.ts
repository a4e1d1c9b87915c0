import { describe, expect, test } from 'vitest';
import { ignition } from '../testdata/build.ts';
import { parseIgnition } from './parse.ts';

function problemsOf(storage: object): string[] {
  const parsed = parseIgnition(ignition({ storage }));
  return parsed.ok ? [] : parsed.problems.map(({ path, reason }) => `${path}: ${reason}`);
}

const disk = (...partitions: object[]) => ({ disks: [{ device: '/dev/sda', partitions }] });
const raid = (more: object) => ({
  raid: [{ name: 'r', level: '1', devices: ['/dev/a', '/dev/b'], ...more }],
});
const luks = (more: object) => ({ luks: [{ name: 'root', device: '/dev/a', ...more }] });
const tang = (more: object) => luks({ clevis: { tang: [{ url: 'https://x', thumbprint: 't', ...more }] } });
const filesystem = (more: object) => ({ filesystems: [{ device: '/dev/a', ...more }] });
const custom = (more: object) => luks({ clevis: { custom: { pin: 'sss', config: '{}', ...more } } });

const PARTITIONS = '$.storage.disks[0].partitions';
const RAID = '$.storage.raid[0]';
const LUKS = '$.storage.luks[0]';
const FILESYSTEM = '$.storage.filesystems[0]';

describe('valid', () => {
  test.each<[string, object]>([
    ['a partition by number', disk({ number: 1 })],
    ['a partition by label', disk({ label: 'x'.repeat(36) })],
    ['a removed partition', disk({ number: 1, shouldExist: false }, { number: 2 })],
    [
      'adjacent partitions',
      disk({ number: 1, startMiB: 1, sizeMiB: 4 }, { number: 2, startMiB: 5, sizeMiB: 4 }),
    ],
    ['partitions that sgdisk places', disk({ number: 1, sizeMiB: 4 }, { number: 2, sizeMiB: 4 })],
    ['a GUID', disk({ number: 1, guid: '01234567-89AB-CDEF-EDCB-A98765432101' })],
    ['a RAID with spares', raid({ spares: 1 })],
    ['a RAID without spares', raid({ level: 'linear' })],
    ['a LUKS volume with the longest label', luks({ label: 'x'.repeat(47) })],
    ['a tang server', tang({ advertisement: '{"a":1}' })],
    ['a custom pin', custom({})],
    ['tang with tpm2', luks({ clevis: { tpm2: true, threshold: 2 } })],
    ['cex', luks({ cex: { enabled: true } })],
    ['a filesystem without a format', filesystem({})],
    ['the longest label of xfs', filesystem({ format: 'xfs', label: 'x'.repeat(12) })],
    ['no filesystem, whatever the label', filesystem({ format: 'none', label: 'x' })],
  ])('%s', (_, storage) => {
    expect(problemsOf(storage)).toEqual([]);
  });
});

describe('rejected', () => {
  test.each<[string, object, readonly string[]]>([
    ['a relative device', { disks: [{ device: 'sda' }] }, ['$.storage.disks[0].device']],
    ['a disk twice', { disks: [{ device: '/dev/a' }, { device: '/dev/a' }] }, ['$.storage.disks[1]']],
    ['a RAID twice', { raid: [...raid({}).raid, ...raid({}).raid] }, ['$.storage.raid[1]']],
    ['a LUKS volume twice', { luks: [...luks({}).luks, ...luks({}).luks] }, ['$.storage.luks[1]']],
    [
      'a filesystem twice',
      { filesystems: [{ device: '/dev/a' }, { device: '/dev/a' }] },
      ['$.storage.filesystems[1]'],
    ],
    ['a partition number twice', disk({ number: 1 }, { number: 1 }), [`${PARTITIONS}[1]`]],
    ['a partition label twice', disk({ label: 'x' }, { label: 'x' }), [`${PARTITIONS}[1]`]],
    ['a partition without number and label', disk({}), [`${PARTITIONS}[0]`]],
    ['a partition with number 0 and no label', disk({ number: 0 }), [`${PARTITIONS}[0]`]],
    ['a long partition label', disk({ label: 'x'.repeat(37) }), [`${PARTITIONS}[0].label`]],
    ['a colon in a partition label', disk({ label: 'a:b' }), [`${PARTITIONS}[0].label`]],
    ['a bad GUID', disk({ number: 1, guid: 'x' }), [`${PARTITIONS}[0].guid`]],
    ['a bad type GUID', disk({ number: 1, typeGuid: 'x' }), [`${PARTITIONS}[0].typeGuid`]],
    [
      'a removed partition with a size',
      disk({ number: 1, shouldExist: false, sizeMiB: 1 }),
      [`${PARTITIONS}[0]`],
    ],
    [
      'a removed partition with a start',
      disk({ number: 1, shouldExist: false, startMiB: 1 }),
      [`${PARTITIONS}[0]`],
    ],
    [
      'a removed partition with a label',
      disk({ number: 1, shouldExist: false, label: 'x' }),
      [`${PARTITIONS}[0]`],
    ],
    [
      'a removed partition beside one without a number',
      disk({ number: 1, shouldExist: false }, { label: 'x' }),
      [PARTITIONS],
    ],
    [
      'partitions that overlap by one MiB',
      disk({ number: 1, startMiB: 1, sizeMiB: 5 }, { number: 2, startMiB: 5, sizeMiB: 4 }),
      [`${PARTITIONS}[1]`],
    ],
    [
      'a partition within a larger one that starts earlier',
      disk(
        { number: 1, startMiB: 1, sizeMiB: 20 },
        { number: 2, startMiB: 30, sizeMiB: 1 },
        { number: 3, startMiB: 10, sizeMiB: 0 },
      ),
      [`${PARTITIONS}[2]`],
    ],
    ['a RAID level', raid({ level: '7' }), [`${RAID}.level`]],
    ['a RAID without a level', raid({ level: '' }), [`${RAID}.level`]],
    ['spares at level 0', raid({ level: '0', spares: 1 }), [`${RAID}.spares`]],
    ['a RAID without devices', raid({ devices: [] }), [`${RAID}.devices`]],
    ['a relative RAID device', raid({ devices: ['a'] }), [`${RAID}.devices[0]`]],
    ['a RAID device twice', raid({ devices: ['/dev/a', '/dev/a'] }), [`${RAID}.devices[1]`]],
    ['a slash in a LUKS name', luks({ name: 'a/b' }), [`${LUKS}.name`]],
    ['a long LUKS label', luks({ label: 'x'.repeat(48) }), [`${LUKS}.label`]],
    ['a LUKS volume without a device', luks({ device: '' }), [`${LUKS}.device`]],
    ['a relative LUKS device', luks({ device: 'a' }), [`${LUKS}.device`]],
    [
      'a custom pin beside tpm2',
      luks({ clevis: { tpm2: true, custom: { pin: 'sss', config: '{}' } } }),
      [`${LUKS}.clevis`],
    ],
    [
      'a custom pin beside a threshold',
      luks({ clevis: { threshold: 1, custom: { pin: 'sss', config: '{}' } } }),
      [`${LUKS}.clevis`],
    ],
    ['an unknown pin', custom({ pin: 'x' }), [`${LUKS}.clevis.custom.pin`]],
    ['a custom pin without a config', custom({ config: '' }), [`${LUKS}.clevis.custom.config`]],
    ['cex beside tpm2', luks({ cex: { enabled: true }, clevis: { tpm2: true } }), [`${LUKS}.cex`]],
    [
      'cex beside a custom pin',
      luks({ cex: { enabled: true }, clevis: { custom: { pin: 'sss', config: '{}' } } }),
      [`${LUKS}.cex`],
    ],
    [
      'cex beside a key file',
      luks({ cex: { enabled: true }, keyFile: { source: 'data:,x' } }),
      [`${LUKS}.cex`],
    ],
    ['a tang server over ftp', tang({ url: 'ftp://x' }), [`${LUKS}.clevis.tang[0].url`]],
    ['a tang server without a thumbprint', tang({ thumbprint: '' }), [`${LUKS}.clevis.tang[0].thumbprint`]],
    [
      'an advertisement that is not JSON',
      tang({ advertisement: '{' }),
      [`${LUKS}.clevis.tang[0].advertisement`],
    ],
    ['an unknown filesystem', filesystem({ format: 'zfs' }), [`${FILESYSTEM}.format`]],
    ['a filesystem path without a format', filesystem({ path: '/a' }), [`${FILESYSTEM}.format`]],
    ['a filesystem UUID without a format', filesystem({ uuid: 'x' }), [`${FILESYSTEM}.format`]],
    ['wiping without a format', filesystem({ wipeFilesystem: true }), [`${FILESYSTEM}.format`]],
    ['options without a format', filesystem({ options: ['x'] }), [`${FILESYSTEM}.format`]],
    ['mount options without a format', filesystem({ mountOptions: ['x'] }), [`${FILESYSTEM}.format`]],
    ['a relative filesystem path', filesystem({ format: 'xfs', path: 'a' }), [`${FILESYSTEM}.path`]],
    ['a long label of vfat', filesystem({ format: 'vfat', label: 'x'.repeat(12) }), [`${FILESYSTEM}.label`]],
  ])('%s', (_, storage, paths) => {
    expect(problemsOf(storage).map((problem) => problem.split(': ')[0])).toEqual(paths);
  });
});

test.each([
  [0, false],
  [2, false],
  [3, true],
  [5, true],
])('version 3.%i.0 has the format none: %s', (minor, isKnown) => {
  const storage = { filesystems: [{ device: '/dev/a', format: 'none' }] };
  expect(parseIgnition({ ignition: { version: `3.${minor}.0` }, storage }).ok).toBe(isKnown);
});

/**
 * The minor version of spec 3 that introduced each field (Ignition, "Migrating configs" in docs/migrating-configs.md).
 */
describe('a field before its version of the spec', () => {
  const at = (minor: number, config: { readonly ignition?: object }) =>
    parseIgnition({ ...config, ignition: { ...config.ignition, version: `3.${minor}.0` } });

  test.each<[number, string, { readonly ignition?: object; readonly [section: string]: unknown }]>([
    [1, '$.ignition.proxy', { ignition: { proxy: { httpProxy: 'http://x' } } }],
    [
      1,
      '$.storage.filesystems[0].mountOptions',
      { storage: filesystem({ format: 'xfs', mountOptions: ['ro'] }) },
    ],
    [2, '$.storage.luks', { storage: luks({}) }],
    [2, '$.passwd.users[0].shouldExist', { passwd: { users: [{ name: 'a', shouldExist: false }] } }],
    [2, '$.passwd.groups[0].shouldExist', { passwd: { groups: [{ name: 'a', shouldExist: false }] } }],
    [2, '$.storage.disks[0].partitions[0].resize', { storage: disk({ number: 1, resize: true }) }],
    [3, '$.kernelArguments', { kernelArguments: { shouldExist: ['a'] } }],
    [4, '$.storage.luks[0].discard', { storage: luks({ discard: true }) }],
    [4, '$.storage.luks[0].openOptions', { storage: luks({ openOptions: ['a'] }) }],
    [4, '$.storage.luks[0].clevis.tang[0].advertisement', { storage: tang({ advertisement: '{}' }) }],
    [5, '$.storage.luks[0].cex', { storage: luks({ cex: { enabled: true } }) }],
  ])('3.%i: %s', (minor, path, config) => {
    expect(at(minor, config)).toMatchObject({ ok: true, warnings: [] });
    expect(at(minor - 1, config)).toMatchObject({ ok: true, warnings: [{ path }] });
  });
});
