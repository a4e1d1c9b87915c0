import fc from 'fast-check';
import { expect, test } from 'vitest';
import { writeLayer } from '../../image/layer/write-layer.ts';
import {
  emptyNodeConfig,
  type NodeConfig,
  type NodeUnit,
  type Owner,
} from '../../machineconfig/node-config.ts';
import type { Subject } from '../../machineconfig/owners.ts';
import { layerContent } from './layer-content.ts';

/** Few names, so that much of what is drawn meets something; among them what is odd, or the host's or Shale's own. */
const part = fc.constantFrom(
  'a',
  'b',
  'foo.service',
  '.wh.a',
  '.wh..wh..opq',
  'ü',
  'x.d',
  'core',
  '%s',
  'a b',
);
const top = fc.constantFrom(
  ...[
    '/etc',
    '/usr',
    '/usr/lib',
    '/lib',
    '/lib64',
    '/bin',
    '/usr/bin',
    '/var',
    '/home',
    '/var/home',
    '/root',
    '/opt',
  ],
  ...['/usr/local', '/srv', '/run', '/var/run', '/boot', '/data', '/etc/systemd/system', '/etc/ssh', '/tmp'],
  ...['/etc/systemd/system/multi-user.target.wants', '/etc/systemd/system/foo.service.d', '/usr/lib/modules'],
  ...[
    '/etc/ssh/authorized_keys.d',
    '/etc/systemd/system-preset',
    '/usr/share/shale',
    '/usr/lib/bootc/kargs.d',
  ],
);
const odd = fc.constantFrom(
  ...[
    '',
    '/',
    'etc/a',
    '/etc/',
    '/etc/../a',
    '/etc//a',
    '/etc/a\nb',
    '/etc/a\0',
    '/etc/\ud800',
    '/etc/\ud801',
  ],
  ...[`/etc/${'x'.repeat(256)}`, '/usr/share/shale/machine-config.json', '/usr/lib/tmpfiles.d/shale.conf'],
  ...['/etc/systemd/system-preset/20-shale.preset', '/usr/lib/bootc/kargs.d/50-shale.toml'],
);
const path = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.tuple(top, fc.array(part, { maxLength: 3 })).map(([a, b]) => [a, ...b].join('/')),
  },
  { weight: 1, arbitrary: odd },
);
const owner: fc.Arbitrary<Owner> = fc.constantFrom(
  { id: 0 },
  { id: 1000 },
  { name: 'core' },
  { name: '' },
  { name: 'a:b' },
  { name: 'a\nd /etc/evil' },
);
const owned = { path, user: owner, group: owner };
const file = fc.record({
  ...owned,
  mode: fc.constantFrom(0o644, 0o600, 0, 0o4755, 0o1777),
  contents: fc.uint8Array({ maxLength: 3 }),
});
const directory = fc.record({ ...owned, mode: fc.constantFrom(0o755, 0o2775) });
const link = fc.record({
  ...owned,
  target: fc.oneof(path, fc.constantFrom('../a', 'a\nb')),
  hard: fc.boolean(),
});
const unit: fc.Arbitrary<NodeUnit> = fc.record(
  {
    name: fc.constantFrom('foo.service', 'bar@.service', 'bar@.wh.a.service', '.wh.a.service', 'baz.timer'),
    contents: fc.constantFrom(
      '[Service]\n',
      '[Install]\nWantedBy=multi-user.target\n',
      '[Install]\nAlias=foo.service\nRequiredBy=%i.target\n',
      '[Install]\nWantedBy=%p.target\nAlso=foo.service\n',
    ),
    enabled: fc.boolean(),
    masked: fc.boolean(),
    dropins: fc.constantFrom(
      new Map<string, string>(),
      new Map([['10.conf', '[Service]\n']]),
      new Map([['.wh.a.conf', '[Service]\n']]),
    ),
  },
  { requiredKeys: ['name', 'masked', 'dropins'] },
);
const byPath = <T extends { readonly path: string }>(of: fc.Arbitrary<T>) =>
  fc.array(of, { maxLength: 4 }).map((entries) => new Map(entries.map((entry) => [entry.path, entry])));
const config: fc.Arbitrary<NodeConfig> = fc
  .record({
    files: byPath(file),
    directories: byPath(directory),
    links: byPath(link),
    units: fc.array(unit, { maxLength: 3 }).map((units) => new Map(units.map((each) => [each.name, each]))),
    sshKeys: fc.constantFrom(
      new Map<string, string[]>(),
      new Map([['core', ['ssh-ed25519 A']]]),
      new Map([['root', ['ssh-ed25519 A']]]),
    ),
    kernelArguments: fc.constantFrom([], ['quiet']),
  })
  .map((drawn) => ({ ...emptyNodeConfig, name: 'rendered-worker-1', ...drawn }));

const rendered = {
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineConfig',
  metadata: { name: 'rendered-worker-1' },
  spec: {},
};

/** @returns a config without what subjects are about. */
function without(config: NodeConfig, subjects: readonly Subject[]): NodeConfig {
  const kept = <T>(map: ReadonlyMap<string, T>, kind: Subject['kind']) =>
    new Map([...map].filter(([name]) => !subjects.some((one) => one.kind === kind && one.subject === name)));
  return {
    ...config,
    files: kept(config.files, 'file'),
    directories: kept(config.directories, 'file'),
    links: kept(config.links, 'file'),
    units: kept(config.units, 'unit'),
    sshKeys: kept(config.sshKeys, 'sshKey'),
    kernelArguments: subjects.some(({ subject }) => subject === 'kernelArguments')
      ? []
      : config.kernelArguments,
  };
}

test('the layer of any config can be written, once everything is gone that obstacles name', async () => {
  await fc.assert(
    fc.asyncProperty(config, async (drawn) => {
      let left = drawn;
      let content = layerContent(left, rendered);
      while (!content.ok) {
        const fewer = without(
          left,
          content.refusals.flatMap(({ involved }) => involved),
        );
        expect(sizeOf(fewer), JSON.stringify(content.refusals)).toBeLessThan(sizeOf(left));
        left = fewer;
        content = layerContent(left, rendered);
      }
      await writeLayer(content.entries);
    }),
    { numRuns: 1000 },
  );
});

function sizeOf({ files, directories, links, units, sshKeys, kernelArguments }: NodeConfig): number {
  const maps = [files, directories, links, units, sshKeys].map(({ size }) => size);
  return maps.reduce((sum, size) => sum + size, kernelArguments.length);
}
