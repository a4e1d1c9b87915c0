import { describe, expect, test } from 'vitest';
import type { LayerEntry } from '../../image/layer/entry.ts';
import type { BaseContent, BaseEntry } from '../../machineconfig/base-tree.ts';
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
const tmpfiles = '/usr/lib/tmpfiles.d/00-shale.conf';

describe('layerContent', () => {
  test('an image always carries its rendered config, and nothing else for an empty one', () => {
    expect([...entriesOf(empty).values()]).toEqual([
      {
        type: 'file',
        path: '/usr/share/shale/machine-config.json',
        mode: 0o644,
        uid: 0,
        gid: 0,
        content: expect.any(Buffer),
      },
    ]);
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
    '%s is state: tmpfiles.d brings it at a first boot',
    (path) => {
      const config = withFiles(file(path));
      expect(entriesOf(config).has(path)).toBe(false);
      expect(textAt(config, tmpfiles)).toContain(
        `f~ ${path} 0644 0 0 - ${Buffer.from('text').toString('base64')}`,
      );
    },
  );

  test('an owner that only the host knows is set there', () => {
    const config = withFiles(file('/etc/chrony.keys', { mode: 0o640, group: { name: 'chrony' } }));
    expect(textAt(config, tmpfiles)).toContain('z /etc/chrony.keys 0640 0 chrony - -');
  });

  test('white space and percent signs in a state path are escaped', () => {
    expect(textAt(withFiles(file('/var/a b%c')), tmpfiles)).toContain('f~ "/var/a b%%c" 0644');
  });

  test.each(['a\nf+ /etc/shadow 0666 - - -', ' ', 'a\\b%c d ', '-', 'x\u2028y\r', '\t'])(
    'a link to %j is one line that says no more than that',
    async (target) => {
      const link = { path: '/var/l', target, hard: false, user: { id: 0 }, group: { id: 0 } };
      const lines = textAt({ ...empty, links: new Map([['/var/l', link]]) }, tmpfiles).split('\n');
      expect(lines.slice(1)).toEqual([expect.stringMatching(/^L \/var\/l - - - - \S(.*\S)?$/s), '']);
    },
  );

  test.each([
    ['path', file('/var/a\nd /etc/evil 0777 - - -')],
    ['owner', file('/var/a', { user: { name: 'root\nd /etc/evil 0777 - - -' } })],
  ])("a line break in a state file's %s is refused", (what, evil) => {
    const why = what === 'path' ? /control character/ : /is not the name of a user or group/;
    expect(layerContent(withFiles(evil), rendered)).toMatchObject({
      ok: false,
      refusals: [{ hinders: 'node', subject: evil.path, why: expect.stringMatching(why) }],
    });
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
      ['off.service', { name: 'off.service', enabled: false, masked: false, dropins: new Map() }],
      ['gone.service', { name: 'gone.service', enabled: true, masked: true, dropins: new Map() }],
      ['same.service', { name: 'same.service', masked: false, dropins: new Map() }],
    ]);
    const entries = entriesOf({ ...empty, units });
    const at = '/etc/systemd/system';
    expect(entries.get(`${at}/multi-user.target.wants/a.service`)).toMatchObject({
      target: `${at}/a.service`,
      uid: 0,
      gid: 0,
    });
    expect(textAt({ ...empty, units }, `${at}/a.service`)).toBe(contents);
    expect(textAt({ ...empty, units }, `${at}/a.service.d/10-x.conf`)).toBe('[Service]\n');
    expect(entries.get(`${at}/b.service`)).toMatchObject({ type: 'symlink', target: '/dev/null' });
    expect(textAt({ ...empty, units }, '/etc/systemd/system-preset/20-shale.preset')).toBe(
      'disable off.service\nenable os.service\n',
    );
    for (const name of ['os', 'off', 'same']) expect(entries.has(`${at}/${name}.service`)).toBe(false);
  });

  test('units that only have text need no preset', () => {
    const unit = {
      name: 'a.service',
      contents: '[Service]\n',
      enabled: false,
      masked: false,
      dropins: new Map(),
    };
    const entries = entriesOf({ ...empty, units: new Map([['a.service', unit]]) });
    expect([...entries.keys()].filter((path) => path.includes('preset'))).toEqual([]);
  });

  test('directories and links go as they are, each with its owner', () => {
    const owner = { user: { id: 3 }, group: { id: 4 } };
    const directory = { path: '/etc/d', mode: 0o750, ...owner };
    const soft = { path: '/etc/soft', target: '../x', hard: false, ...owner };
    const hard = { path: '/etc/hard', target: '/etc/file', hard: true, ...owner };
    const entries = entriesOf({
      ...withFiles(file('/etc/file')),
      directories: new Map([[directory.path, directory]]),
      links: new Map([soft, hard].map((link) => [link.path, link])),
    });
    expect(entries.get('/etc/d')).toEqual({ type: 'directory', path: '/etc/d', mode: 0o750, uid: 3, gid: 4 });
    expect(entries.get('/etc/soft')).toEqual({
      type: 'symlink',
      path: '/etc/soft',
      target: '../x',
      uid: 3,
      gid: 4,
    });
    expect(entries.get('/etc/hard')).toEqual({ type: 'hardlink', path: '/etc/hard', target: '/etc/file' });
    expect(entries.has(tmpfiles)).toBe(false);
  });

  test('a directory in the state, or of an owner that only the host knows, is a line of tmpfiles.d', () => {
    const root = { user: { name: 'root' }, group: { id: 0 } };
    const directories = [
      { path: '/var/d', mode: 0o700, ...root },
      { path: '/etc/d', mode: 0o755, user: { name: 'chrony' }, group: { id: 0 } },
      { path: '/etc/plain', mode: 0o755, ...root },
    ].map((directory) => [directory.path, directory] as const);
    const config = { ...empty, directories: new Map(directories) };
    expect(entriesOf(config).has('/var/d')).toBe(false);
    expect(entriesOf(config).get('/etc/d')).toMatchObject({ uid: 0, gid: 0 });
    expect(textAt(config, tmpfiles).split('\n').slice(1)).toEqual([
      'z /etc/d 0755 chrony 0 - -',
      'd /var/d 0700 root 0 - -',
      '',
    ]);
  });

  test.each(['/var', '/srv', '/usr/local', '/tmp'])('a directory at %s itself is state, too', (path) => {
    const directory = { path, mode: 0o755, user: { id: 0 }, group: { id: 0 } };
    const config = { ...empty, directories: new Map([[path, directory]]) };
    expect(textAt(config, tmpfiles)).toContain(`d ${path} 0755 0 0 - -`);
  });

  test.each(['/variable/x', '/etcetera/x', '/etc', '/usr', '/libraries/x', '/usrx'])(
    '%s only begins like what an image carries, or is all of it',
    (path) => {
      const content = layerContent(withFiles(file(path)), rendered);
      expect(content).toMatchObject({ ok: false, refusals: [{ subject: path }] });
    },
  );

  test.each(['/usr/lib/modules', '/usr/lib/modules/x', '/usr/etc/x', '/etc/gshadow'])(
    '%s is written by the OS tools alone',
    (path) => {
      expect(layerContent(withFiles(file(path)), rendered).ok).toBe(false);
    },
  );

  test.each(['/usr/lib/modules-load.d/x', '/etc/groups', '/etc/passwd.d/x'])('%s is not', (path) => {
    expect(entriesOf(withFiles(file(path))).has(path)).toBe(true);
  });

  test.each([0o2755, 0o6755])('a file with mode %o is refused, and in no layer', (mode) => {
    const content = layerContent(withFiles(file('/usr/bin/x', { mode })), rendered);
    const why = `mode ${mode.toString(8)} sets the user or group ID on execution`;
    expect(content).toMatchObject({ ok: false, refusals: [{ subject: '/usr/bin/x', why }] });
  });

  test('everything that can not be carried is named at once', () => {
    const config = { ...withFiles(file('/data/x'), file('/etc/shadow')), extensions: ['usbguard'] };
    const content = layerContent(config, rendered);
    expect(content.ok === false && content.refusals.map(({ subject }) => subject)).toEqual([
      'extensions',
      '/data/x',
      '/etc/shadow',
    ]);
  });

  test('another kernel and extensions need no layer where an engine installed them', () => {
    const config = { ...empty, kernelType: 'realtime' as const, extensions: ['usbguard'] };
    expect(layerContent(config, rendered, { hasPackages: true }).ok).toBe(true);
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

describe('on a base', () => {
  const directory = (mode: number, uid: number): BaseEntry => {
    return { kind: 'directory', mode, uid, gid: uid, isEmpty: false, xattrs: { 'user.a': Buffer.from('x') } };
  };
  const there: Readonly<Record<string, BaseEntry>> = {
    '/etc': directory(0o755, 0),
    '/etc/d': directory(0o750, 5),
    '/etc/l': { kind: 'link', target: 'd' },
    '/usr': directory(0o755, 0),
    '/usr/lib': directory(0o755, 0),
    '/usr/lib64': { kind: 'link', target: 'lib' },
  };
  const base: BaseContent = {
    at: (path) => there[path],
    users: new Map([['chrony', 994]]),
    groups: new Map([['chrony', 993]]),
  };
  const on = (config: NodeConfig) => {
    const content = layerContent(config, rendered, { base });
    if (!content.ok) throw new Error(JSON.stringify(content.refusals));
    return new Map(content.entries.map((entry) => [entry.path, entry]));
  };
  const chrony = { user: { name: 'chrony' }, group: { name: 'chrony' } };

  test('files and what they are linked to lie where its links lead', () => {
    const hard = { path: '/usr/lib64/hard', target: '/usr/lib64/tool', hard: true, ...chrony };
    const config = { ...withFiles(file('/usr/lib64/tool')), links: new Map([[hard.path, hard]]) };
    const entries = on(config);
    expect(entries.get('/usr/lib/hard')).toMatchObject({ type: 'hardlink', target: '/usr/lib/tool' });
    expect([...entries.keys()].filter((path) => path.startsWith('/usr/lib64'))).toEqual([]);
  });

  test('owners that it knows are its numbers, and no line of tmpfiles.d', () => {
    const link = { path: '/etc/soft', target: 'x', hard: false, ...chrony };
    const entries = on({
      ...withFiles(file('/etc/chrony.keys', chrony), file('/usr/lib/x', chrony)),
      links: new Map([[link.path, link]]),
    });
    for (const path of ['/etc/chrony.keys', '/usr/lib/x', '/etc/soft'])
      expect(entries.get(path)).toMatchObject({ uid: 994, gid: 993 });
    expect(entries.has(tmpfiles)).toBe(false);
    const unknown = on(withFiles(file('/etc/app', { user: { name: 'app' } }))).get(tmpfiles);
    expect(unknown?.type === 'file' && Buffer.from(unknown.content).toString()).toContain(
      'z /etc/app 0644 app 0',
    );
  });

  test('a directory that it has keeps its attributes, and a line sets mode and owner for readers that keep those, too', () => {
    const own = { path: '/etc/d', mode: 0o700, user: { id: 0 }, group: { id: 0 } };
    const entries = on({ ...empty, directories: new Map([[own.path, own]]) });
    expect(entries.get('/etc/d')).toMatchObject({
      mode: 0o700,
      uid: 0,
      xattrs: { 'user.a': Buffer.from('x') },
    });
    const lines = entries.get(tmpfiles);
    expect(lines?.type === 'file' && Buffer.from(lines.content).toString()).toContain('z /etc/d 0700 0 0');
    const same = { ...own, mode: 0o750, user: { id: 5 }, group: { id: 5 } };
    expect(on({ ...empty, directories: new Map([[own.path, same]]) }).has(tmpfiles)).toBe(false);
  });

  test('what it hinders is refused', () => {
    expect(layerContent(withFiles(file('/etc/d')), rendered, { base })).toMatchObject({
      ok: false,
      refusals: [{ hinders: 'image', subject: '/etc/d' }],
    });
  });
});
