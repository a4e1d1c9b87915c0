import fc from 'fast-check';
import type { MachineConfig } from '../../api/machine-config.ts';
import { ignition, machineConfig } from './build.ts';

/**
 * MachineConfigs that overlap: few paths, units and users, so that most of what is merged meets something. They are
 * valid one by one; together they may not be.
 */

const text = fc.constantFrom('', 'a', 'b\n', 'ü');
const path = fc.constantFrom('/etc/a', '/etc/b', '/etc/c/d', '/usr/local/e');
const mode = fc.constantFrom(0o600, 0o644, 0o755);
const owner = fc.constantFrom({ id: 0 }, { id: 1000 }, { name: 'core' });

const file = fc.record(
  {
    path,
    mode,
    user: owner,
    contents: text.map((contents) => ({ source: `data:,${encodeURIComponent(contents)}` })),
  },
  { requiredKeys: ['path', 'contents'] },
);
const directory = fc.record({ path, mode, group: owner }, { requiredKeys: ['path'] });
const link = fc.record({ path, target: fc.constantFrom('/etc/x', '../y') });
const dropin = fc.record(
  { name: fc.constantFrom('10-a.conf', '20-b.conf'), contents: fc.constantFrom('', '[Service]\nNice=1\n') },
  { requiredKeys: ['name'] },
);
const unit = fc.record(
  {
    name: fc.constantFrom('a.service', 'b@.service', 'c.timer'),
    enabled: fc.boolean(),
    mask: fc.boolean(),
    contents: fc.constantFrom('', '[Unit]\nDescription=x\n[Install]\nWantedBy=multi-user.target\n'),
    dropins: fc.uniqueArray(dropin, { selector: ({ name }) => name, maxLength: 2 }),
  },
  { requiredKeys: ['name'] },
);
const user = fc.record(
  {
    name: fc.constant('core'),
    passwordHash: fc.constantFrom('', '$6$x'),
    sshAuthorizedKeys: fc.uniqueArray(fc.constantFrom('ssh-ed25519 A', 'ssh-ed25519 B', 'ssh-rsa C')),
  },
  { requiredKeys: ['name'] },
);

/** No path twice in one config, whatever kind of entry it is. */
const storage = fc
  .uniqueArray(
    fc.oneof(
      { weight: 4, arbitrary: file.map((entry) => ({ list: 'files', entry })) },
      { weight: 1, arbitrary: directory.map((entry) => ({ list: 'directories', entry })) },
      { weight: 1, arbitrary: link.map((entry) => ({ list: 'links', entry })) },
    ),
    { selector: ({ entry }) => entry.path, maxLength: 4 },
  )
  .map((entries) =>
    Object.fromEntries(
      ['files', 'directories', 'links'].map((list) => [
        list,
        entries.filter((one) => one.list === list).map(({ entry }) => entry),
      ]),
    ),
  );

const config = fc.record(
  {
    storage,
    systemd: fc.record({ units: fc.uniqueArray(unit, { selector: ({ name }) => name, maxLength: 3 }) }),
    passwd: fc.record({ users: fc.array(user, { maxLength: 1 }) }),
  },
  { requiredKeys: [] },
);

const spec = fc.record(
  {
    kernelArguments: fc.array(fc.constantFrom('quiet', 'audit=1', 'a=b c'), { maxLength: 2 }),
    kernelType: fc.constantFrom('', 'default', 'realtime', '64k-pages'),
    extensions: fc.array(fc.constantFrom('usbguard', 'kerberos'), { maxLength: 1 }),
    fips: fc.boolean(),
    osImageURL: fc.constantFrom('', 'registry.example.org/os@sha256:1', 'registry.example.org/os@sha256:2'),
  },
  { requiredKeys: [] },
);

/** One to eight MachineConfigs of different names and of the roles worker and infra. */
export const machineConfigs: fc.Arbitrary<MachineConfig[]> = fc.uniqueArray(
  fc
    .record({
      name: fc.constantFrom(...Array.from({ length: 12 }, (_, index) => `${index % 3}${index}-config`)),
      role: fc.constantFrom('worker', 'infra'),
      config: fc.option(config, { nil: undefined }),
      spec,
    })
    .map(({ name, role, config, spec }) =>
      machineConfig(name, config === undefined ? undefined : ignition(config), spec, role),
    ),
  { selector: (one) => one.metadata.name, minLength: 1, maxLength: 8 },
);
