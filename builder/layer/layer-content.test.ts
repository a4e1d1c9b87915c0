import { describe, expect, test } from 'vitest';
import type { LayerEntry } from '../../image/layer/entry.ts';
import { emptyNodeConfig, type NodeConfig, type NodeFile } from '../../machineconfig/node-config.ts';
import { layerContent } from './layer-content.ts';

const empty: NodeConfig = { ...emptyNodeConfig, name: 'rendered-worker-1' };
const rendered = {
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineConfig',
  metadata: { name: 'rendered-worker-1' },
  spec: {},
};
const file = (path: string, more: Partial<NodeFile> = {}): NodeFile => ({
  path,
  contents: Buffer.from('text'),
  mode: 0o644,
  user: { id: 0 },
  group: { id: 0 },
  ...more,
});
const withFiles = (...files: NodeFile[]): NodeConfig => ({
  ...empty,
  files: new Map(files.map((f) => [f.path, f])),
});

function entriesOf(config: NodeConfig): ReadonlyMap<string, LayerEntry> {
  const content = layerContent(config, rendered);
  if (!content.ok) throw new Error(JSON.stringify(content.refusals));
  return new Map(content.entries.map((entry) => [entry.path, entry]));
}
function textAt(config: NodeConfig, path: string): string {
  const entry = entriesOf(config).get(path);
  if (entry?.type !== 'file') throw new Error(`no file at ${path}`);
  return Buffer.from(entry.content).toString();
}
const tmpfiles = '/usr/lib/tmpfiles.d/shale.conf';

describe('layerContent', () => {
  test('an image always carries its rendered config, and nothing else for an empty one', () => {
    expect([...entriesOf(empty).keys()]).toEqual(['/usr/share/shale/machine-config.json']);
  });

  test('an object that is made anew in the cluster is the same layer; how it is to be read goes along', () => {
    const limits = { 'shale.dev/limits': '{"fileBytes":1,"configBytes":1}' };
    const inCluster = {
      spec: {},
      kind: rendered.kind,
      apiVersion: rendered.apiVersion,
      metadata: {
        name: rendered.metadata.name,
        uid: '1',
        resourceVersion: '2',
        creationTimestamp: '2026-06-01T00:00:00Z',
        annotations: { 'shale.dev/transitions': '[]', ...limits },
      },
    };
    const limited = { ...rendered, metadata: { ...rendered.metadata, annotations: limits } };
    expect(layerContent(empty, inCluster)).toEqual(layerContent(empty, limited));
    expect(layerContent(empty, limited)).not.toEqual(layerContent(empty, rendered));
  });

  test('files under /etc and /usr go as they are', () => {
    expect(
      entriesOf(withFiles(file('/etc/chrony.conf', { mode: 0o600, user: { id: 7 } }))).get(
        '/etc/chrony.conf',
      ),
    ).toMatchObject({
      type: 'file',
      mode: 0o600,
      uid: 7,
    });
  });

  test('a path through a merged /usr does not hide it', () => {
    expect([...entriesOf(withFiles(file('/lib/udev/rules.d/x')))].map(([path]) => path)).toContain(
      '/usr/lib/udev/rules.d/x',
    );
  });

  test.each(['/var/lib/x', '/home/core/x', '/opt/x', '/usr/local/bin/x', '/root/x'])(
    '%s is state: tmpfiles.d brings it',
    (path) => {
      const config = withFiles(file(path));
      expect(entriesOf(config).has(path)).toBe(false);
      expect(textAt(config, tmpfiles)).toContain(
        `f+~ ${path} 0644 0 0 - ${Buffer.from('text').toString('base64')}`,
      );
    },
  );

  test('an owner that only the host knows is set there', () => {
    const config = withFiles(file('/etc/chrony.keys', { mode: 0o640, group: { name: 'chrony' } }));
    expect(textAt(config, tmpfiles)).toContain('z /etc/chrony.keys 0640 0 chrony - -');
  });

  test('white space and percent signs in a state path are escaped', () => {
    expect(textAt(withFiles(file('/var/a b%c')), tmpfiles)).toContain('f+~ "/var/a b%%c" 0644');
  });

  test.each(['a\nf+ /etc/shadow 0666 - - -', ' ', 'a\\b%c d ', '-', 'x\u2028y\r', '\t'])(
    'a link to %j is one line that says no more than that',
    async (target) => {
      const link = { path: '/var/l', target, hard: false, user: { id: 0 }, group: { id: 0 } };
      const lines = textAt({ ...empty, links: new Map([['/var/l', link]]) }, tmpfiles).split('\n');
      expect(lines.slice(1)).toEqual([expect.stringMatching(/^L\+ \/var\/l - - - - \S(.*\S)?$/s), '']);
    },
  );

  test.each([
    ['path', file('/var/a\nd /etc/evil 0777 - - -')],
    ['owner', file('/var/a', { user: { name: 'root\nd /etc/evil 0777 - - -' } })],
  ])("a line break in a state file's %s is refused", (_what, evil) => {
    expect(() => layerContent(withFiles(evil), rendered)).toThrow('control character');
  });

  test('units: their text, their drop-ins, the links that enable them, masks', () => {
    const contents = '[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n';
    const units: NodeConfig['units'] = new Map([
      [
        'a.service',
        {
          name: 'a.service',
          contents,
          enabled: true,
          masked: false,
          dropins: new Map([['10-x.conf', '[Service]\n']]),
        },
      ],
      ['b.service', { name: 'b.service', contents, masked: true, dropins: new Map() }],
      ['os.service', { name: 'os.service', enabled: true, masked: false, dropins: new Map() }],
    ]);
    const entries = entriesOf({ ...empty, units });
    const at = '/etc/systemd/system';
    expect(entries.get(`${at}/multi-user.target.wants/a.service`)).toMatchObject({
      target: `${at}/a.service`,
    });
    expect(entries.get(`${at}/a.service.d/10-x.conf`)?.type).toBe('file');
    expect(entries.get(`${at}/b.service`)).toMatchObject({ type: 'symlink', target: '/dev/null' });
    expect(textAt({ ...empty, units }, '/etc/systemd/system-preset/20-shale.preset')).toBe(
      'enable os.service\n',
    );
  });

  test('SSH keys lie where no home is needed, and sshd is told', () => {
    const config = { ...empty, sshKeys: new Map([['core', ['ssh-ed25519 A', 'ssh-ed25519 B']]]) };
    expect(textAt(config, '/etc/ssh/authorized_keys.d/core')).toBe('ssh-ed25519 A\nssh-ed25519 B\n');
    expect(textAt(config, '/etc/ssh/sshd_config.d/40-shale-authorized-keys.conf')).toMatch(
      /^AuthorizedKeysFile .*authorized_keys\.d\/%u\n$/,
    );
  });

  test('kernel arguments go where bootc reads them', () => {
    expect(
      textAt({ ...empty, kernelArguments: ['quiet', 'a="b c"'] }, '/usr/lib/bootc/kargs.d/50-shale.toml'),
    ).toBe('kargs = ["quiet", "a=\\"b c\\""]\n');
  });

  test.each<[string, NodeConfig, RegExp]>([
    ['a password hash', { ...empty, passwordHashes: new Map([['core', '$6$secret']]) }, /could read it/],
    ['another kernel', { ...empty, kernelType: 'realtime' }, /container engine/],
    ['extensions', { ...empty, extensions: ['usbguard'] }, /container engine/],
    ['setuid', withFiles(file('/usr/bin/x', { mode: 0o4755 })), /sets the user or group ID/],
    ['the accounts of the OS', withFiles(file('/etc/shadow')), /managed by the operating system/],
    ['a directory of its own in the root', withFiles(file('/data/x')), /an image can only carry/],
  ])('%s is refused, and never told', (_name, config, why) => {
    const content = layerContent(config, rendered);
    expect(content.ok === false && content.refusals.map((refusal) => refusal.why).join()).toMatch(why);
    expect(JSON.stringify(content)).not.toContain('secret');
  });
});
