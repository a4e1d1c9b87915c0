import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { parseDigestedPullspec } from '../../api/references.ts';
import type { IgnitionConfig } from '../../machineconfig/ignition/config.ts';
import { parseIgnition } from '../../machineconfig/ignition/parse.ts';
import { firstBootParts } from './first-boot.ts';
import { formatCloudInit, formatIgnition, onlyForIgnition, secretsIn } from './first-boot-formats.ts';

const image = parseDigestedPullspec(`r.io/os/worker@sha256:${'1'.repeat(64)}`);
const parts = firstBootParts({ pool: 'worker', image, publicKeys: ['PEM'], hasStartupTaint: true });
const none = firstBootParts({ pool: 'worker', publicKeys: [], hasStartupTaint: false });
const disks = {
  disks: [{ device: '/dev/vdb', partitions: [{ label: 'data', number: 1 }] }],
  luks: [{ name: 'data', device: '/dev/disk/by-partlabel/data', clevis: { tpm2: true } }],
  filesystems: [{ device: '/dev/mapper/data', format: 'xfs', path: '/var/data' }],
};
const config: IgnitionConfig = {
  ignition: { version: '3.4.0' },
  passwd: { users: [{ name: 'core', sshAuthorizedKeys: ['ssh-ed25519 AAAA'] }] },
  storage: { ...disks, files: [{ path: '/etc/motd', contents: { source: 'data:,of%20the%20image' } }] },
  systemd: { units: [{ name: 'of-the-image.service', enabled: true }] },
};
const bare: IgnitionConfig = { ignition: { version: '3.5.0' } };

describe('Ignition', () => {
  test('has the first boot and what only Ignition can set up, and is valid', () => {
    const text = formatIgnition(parts, config);
    const parsed = parseIgnition(JSON.parse(text));
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
    expect(parsed.warnings).toEqual([]);
    expect(parsed.config.storage).toMatchObject(disks);
    expect(parsed.config.passwd).toEqual(config.passwd);
    expect(parsed.config.storage?.files?.map((file) => file.path)).toEqual(
      parts.files.map(({ path }) => path),
    );
    expect(parsed.config.systemd?.units?.map(({ name }) => name)).toEqual([
      'shale-first-boot.service',
      'kubelet.service',
    ]);
    const [script] = parsed.config.storage?.files ?? [];
    const [, data = ''] = script?.contents?.source?.split('base64,') ?? [];
    expect(Buffer.from(data, 'base64').toString()).toBe(parts.files[0]?.contents);
    expect(JSON.parse(text).ignition).toEqual({ version: '3.2.0' });
  });

  test('is the same for the same values', () => {
    expect(formatIgnition(parts, config)).toBe(formatIgnition(parts, structuredClone(config)));
  });

  test('has no section without content', () => {
    expect(JSON.parse(formatIgnition(none, bare))).toEqual({ ignition: { version: '3.2.0' } });
  });
});

test.each<[string, Partial<IgnitionConfig>, readonly string[]]>([
  ['keys of SSH are public', { passwd: { users: [{ name: 'core', sshAuthorizedKeys: ['k'] }] } }, []],
  [
    'password hashes',
    {
      passwd: {
        users: [{ name: 'core', passwordHash: '$6$' }],
        groups: [{ name: 'g', passwordHash: '$6$' }],
      },
    },
    ['$.passwd.users[0].passwordHash', '$.passwd.groups[0].passwordHash'],
  ],
  ['a key in the TPM', { storage: disks }, []],
  [
    'a key of LUKS',
    { storage: { luks: [{ name: 'a', keyFile: { source: 'data:,k' } }] } },
    ['$.storage.luks[0].keyFile'],
  ],
  [
    'a pin of one’s own',
    { storage: { luks: [{ name: 'a', clevis: { custom: { pin: 'p', config: 'k' } } }] } },
    ['$.storage.luks[0].clevis.custom.config'],
  ],
])('secrets are found: %s', (_name, sections, expected) => {
  expect(secretsIn(sections)).toEqual(expected);
});

describe('cloud-init', () => {
  test('writes every file before anything else runs, and starts the unit without waiting for it', () => {
    const text = formatCloudInit(parts);
    expect(text.startsWith('#cloud-config\n')).toBe(true);
    const { bootcmd, ...others } = parse(text);
    expect(others).toEqual({});
    // One string: bootCommands of Cluster API takes strings of up to 10,240 characters.
    expect(bootcmd).toEqual([expect.any(String)]);
    const [script] = bootcmd;
    expect(script.length).toBeLessThan(10_240);
    const written = [...script.matchAll(/^echo (\S+) \| base64 -d > (\S+)$/gm)].map(([, data, file]) => [
      file,
      Buffer.from(data, 'base64').toString(),
    ]);
    expect(written).toEqual([
      ...parts.files.map((file) => [file.path, file.contents]),
      ['/etc/systemd/system/shale-first-boot.service', parts.unit?.contents],
      ['/etc/systemd/system/kubelet.service.d/10-shale-first-boot.conf', parts.dropin?.contents],
    ]);
    // In a subshell: cloud-init runs all commands of bootcmd in one shell.
    expect(script.trimEnd().split('\n').slice(0, 2)).toEqual(['(', 'set -eu']);
    expect(script.trimEnd().split('\n').slice(-3)).toEqual([
      'systemctl daemon-reload',
      'systemctl start --no-block shale-first-boot.service',
      ')',
    ]);
    expect(formatCloudInit(parts)).toBe(text);
  });

  test('is an empty config where nothing is to be done', () => {
    expect(parse(formatCloudInit(none))).toEqual({});
  });

  test('has no fields for what only Ignition sets up, which is named', () => {
    expect(onlyForIgnition(config)).toEqual([
      '$.storage.disks',
      '$.storage.luks',
      '$.storage.filesystems',
      '$.passwd.users',
    ]);
    expect(onlyForIgnition(bare)).toEqual([]);
  });
});
