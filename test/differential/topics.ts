import { directory, file, hardLink, link, type TreeItem } from './tree-item.ts';

/**
 * One thing that operating systems have and that a config may meet: what the base has of it, layer by layer, what the
 * node has of it in /var, and the paths at which a config meets it. A case has a few of them, so that a failure shrinks
 * to one.
 */
export interface Topic {
  readonly name: string;
  /** The layers of the base. */
  readonly base?: readonly (readonly TreeItem[])[];
  /** What the node has in /var before Shale comes. */
  readonly state?: readonly TreeItem[];
  /** Where a config meets it. */
  readonly paths: readonly string[];
}

const LONG = 'l'.repeat(110);
const CORE = { uid: 1000, gid: 1000 };
const SVC = { uid: 998, gid: 998 };

/** What every base has: a merged /usr, the links of an ostree system, and users. */
export const SKELETON: readonly TreeItem[] = [
  ...[
    '/etc',
    '/etc/ssh',
    '/etc/systemd',
    '/etc/systemd/system',
    '/usr',
    '/usr/bin',
    '/usr/lib',
    '/usr/lib/systemd',
  ].map((path) => directory(path)),
  ...['/usr/lib/systemd/system', '/usr/lib/tmpfiles.d', '/usr/share'].map((path) => directory(path)),
  ...['/usr/sbin', '/usr/lib64'].map((path) => directory(path)),
  ...['bin', 'sbin', 'lib', 'lib64'].map((name) => link(`/${name}`, `usr/${name}`)),
  link('/home', 'var/home'),
  link('/root', 'var/roothome'),
  link('/opt', 'var/opt'),
  link('/srv', 'var/srv'),
  link('/usr/local', '../var/usrlocal'),
  file('/etc/passwd', 'root:x:0:0::/root:/bin/sh\ncore:x:1000:1000::/home/core:/bin/sh\n'),
  file('/etc/group', 'root:x:0:\ncore:x:1000:\n'),
  file('/usr/lib/passwd', 'svc:x:998:998::/var/lib/svc:/bin/false\n'),
  file('/usr/lib/group', 'svc:x:998:\n'),
];

/** What every node has in /var. */
export const STATE_SKELETON: readonly TreeItem[] = [
  ...['/var/home', '/var/lib', '/var/opt', '/var/srv', '/var/usrlocal', '/var/usrlocal/bin'].map((path) =>
    directory(path),
  ),
  directory('/var/roothome', { mode: 0o700 }),
  directory('/var/home/core', { mode: 0o700, ...CORE }),
];

export const TOPICS: readonly Topic[] = [
  { name: 'nothing', paths: ['/etc/new', '/etc/new/deep/file', '/usr/lib/new', '/usr/lib/new/file'] },
  {
    name: 'certs is a relative link',
    base: [[file('/etc/pki/tls/certs/ca.pem', 'base ca'), link('/etc/ssl/certs', '../pki/tls/certs')]],
    paths: [
      '/etc/ssl/certs',
      '/etc/ssl/certs/new.pem',
      '/etc/ssl/certs/ca.pem',
      '/etc/pki/tls/certs/ca.pem',
      '/etc/ssl',
      '/etc/pki/tls/certs',
    ],
  },
  {
    name: 'init.d is an absolute link',
    base: [[file('/etc/rc.d/init.d/functions', 'sh'), link('/etc/init.d', '/etc/rc.d/init.d')]],
    paths: ['/etc/init.d/x', '/etc/init.d', '/etc/rc.d/init.d/x', '/etc/init.d/functions'],
  },
  {
    name: 'link of /etc dangles',
    base: [[link('/etc/dangling', 'nowhere/here')]],
    paths: ['/etc/dangling', '/etc/dangling/x', '/etc/nowhere/here/x', '/etc/nowhere'],
  },
  {
    name: 'link of /etc leads to /usr',
    base: [[file('/usr/lib/vendor/a.conf', 'vendor'), link('/etc/vendor', '../usr/lib/vendor')]],
    paths: [
      '/etc/vendor/a.conf',
      '/etc/vendor/b.conf',
      '/etc/vendor',
      '/usr/lib/vendor/a.conf',
      '/usr/lib/vendor/b.conf',
    ],
  },
  {
    name: 'link of /etc leads to /var',
    base: [[link('/etc/state', '/var/lib/state')]],
    state: [directory('/var/lib/state', { mode: 0o750 }), file('/var/lib/state/own', 'own')],
    paths: ['/etc/state/new', '/etc/state/own', '/var/lib/state/own', '/etc/state', '/var/lib/state'],
  },
  {
    name: 'link to a link',
    base: [[link('/etc/first', 'second'), link('/etc/second', 'third'), file('/etc/third/x', 'x')]],
    paths: ['/etc/first/x', '/etc/second/y', '/etc/first', '/etc/second', '/etc/third'],
  },
  {
    name: 'link to a file',
    base: [[file('/etc/real.conf', 'real'), link('/etc/alias.conf', 'real.conf')]],
    paths: ['/etc/alias.conf', '/etc/real.conf', '/etc/alias.conf/x'],
  },
  {
    name: 'sbin is a link',
    base: [[link('/usr/sbin', 'bin'), file('/usr/bin/tool', 'tool', { mode: 0o755 })]],
    paths: [
      '/usr/sbin/tool',
      '/sbin/tool',
      '/usr/sbin/new',
      '/sbin/new',
      '/usr/bin/new',
      '/bin/tool',
      '/usr/sbin',
    ],
  },
  {
    name: 'lib64 is a link',
    base: [[link('/usr/lib64', 'lib'), file('/usr/lib/lib.so', 'so', { mode: 0o755 })]],
    paths: ['/usr/lib64/new.so', '/lib64/new.so', '/usr/lib64/lib.so', '/lib/lib.so', '/usr/lib64'],
  },
  {
    name: 'closed directories',
    base: [
      [
        directory('/etc/sudoers.d', { mode: 0o750 }),
        directory('/etc/NetworkManager/system-connections', { mode: 0o700 }),
        file('/etc/sudoers.d/base', 'base', { mode: 0o440 }),
      ],
    ],
    paths: [
      '/etc/sudoers.d/new',
      '/etc/sudoers.d/base',
      '/etc/sudoers.d',
      '/etc/NetworkManager/system-connections/new',
      '/etc/NetworkManager',
    ],
  },
  {
    name: 'directory of a service',
    base: [
      [
        directory('/etc/polkit-1/rules.d', { mode: 0o700, ...SVC }),
        file('/etc/polkit-1/rules.d/50', 'base', SVC),
      ],
    ],
    paths: [
      '/etc/polkit-1/rules.d/60',
      '/etc/polkit-1/rules.d/50',
      '/etc/polkit-1/rules.d',
      '/etc/polkit-1/rules.d/deep/file',
    ],
  },
  {
    name: 'directory of sshd',
    base: [
      [
        directory('/etc/ssh/sshd_config.d', { mode: 0o700 }),
        file('/etc/ssh/sshd_config.d/50-base.conf', 'base', { mode: 0o600 }),
      ],
    ],
    paths: [
      '/etc/ssh/sshd_config.d/60.conf',
      '/etc/ssh/sshd_config.d',
      '/etc/ssh/sshd_config.d/50-base.conf',
      '/etc/.wh.ssh/x',
      '/etc/.wh.ssh',
    ],
  },
  {
    name: 'setgid directory',
    base: [
      [
        directory('/etc/shared', { mode: 0o2775, gid: 1000 }),
        directory('/usr/lib/shared', { mode: 0o2755, gid: 1000 }),
      ],
    ],
    paths: [
      '/etc/shared/new',
      '/etc/shared',
      '/etc/shared/deep/file',
      '/usr/lib/shared/new',
      '/usr/lib/shared/deep/file',
    ],
  },
  {
    name: 'full and empty directories',
    base: [
      [
        directory('/etc/empty', { mode: 0o711 }),
        file('/etc/full/a', 'a'),
        file('/etc/full/deep/b', 'b'),
        file('/usr/lib/full/c', 'c'),
      ],
    ],
    paths: [
      '/etc/empty',
      '/etc/full',
      '/etc/full/deep',
      '/etc/full/a',
      '/etc/full/a/below',
      '/usr/lib/full',
      '/usr/lib/full/c',
    ],
  },
  {
    name: 'hard links',
    base: [
      [
        file('/etc/hl/a', 'same'),
        hardLink('/etc/hl/b', '/etc/hl/a'),
        file('/usr/lib/hl/a', 'same'),
        hardLink('/usr/lib/hl/b', '/usr/lib/hl/a'),
      ],
    ],
    paths: ['/etc/hl/a', '/etc/hl/b', '/usr/lib/hl/a', '/usr/lib/hl/b', '/etc/hl'],
  },
  {
    name: 'capability',
    base: [
      [
        file('/usr/bin/ping', 'ping', { mode: 0o755, capable: true }),
        file('/etc/capable', 'x', { mode: 0o755, capable: true }),
      ],
    ],
    paths: ['/usr/bin/ping', '/etc/capable', '/usr/bin/ping4'],
  },
  {
    name: 'odd modes',
    base: [
      [
        file('/etc/secret', 'secret', { mode: 0o600 }),
        file('/etc/of-svc', 'svc', { mode: 0o640, ...SVC }),
        file('/etc/shadow', 'root:*:1::::::\n', { mode: 0 }),
      ],
    ],
    paths: ['/etc/secret', '/etc/of-svc', '/etc/s?adow', '/etc/*', '/etc/secre[t]'],
  },
  {
    name: 'odd names',
    base: [[file(`/etc/odd/a b%c`, 'odd'), file('/etc/odd/größe', 'ä'), file(`/etc/odd/${LONG}`, 'long')]],
    paths: [
      '/etc/odd/a b%c',
      '/etc/odd/größe',
      `/etc/odd/${LONG}`,
      '/etc/odd/b\\d[e]{f}',
      `/etc/odd/"q"'`,
      `/etc/${LONG}/${LONG}`,
    ],
  },
  {
    name: 'whiteouts',
    base: [
      [
        file('/etc/gone', 'lower'),
        file('/etc/opaque/lower', 'lower'),
        file('/etc/becomes', 'file'),
        file('/etc/turns/x', 'x'),
      ],
      [
        { type: 'whiteout', path: '/etc/gone' },
        { type: 'opaque', path: '/etc/opaque' },
        file('/etc/opaque/upper', 'upper'),
        directory('/etc/becomes', { mode: 0o700 }),
        link('/etc/turns', 'opaque'),
      ],
      [directory('/etc/opaque', { mode: 0o750, gid: 1000 })],
    ],
    paths: [
      '/etc/gone',
      '/etc/gone/x',
      '/etc/opaque/lower',
      '/etc/opaque/new',
      '/etc/becomes/x',
      '/etc/becomes',
      '/etc/turns/x',
      '/etc/turns',
    ],
  },
  {
    name: 'state',
    state: [
      directory('/var/lib/app', { mode: 0o750, ...SVC }),
      file('/var/lib/app/data', 'data', SVC),
      directory('/var/lib/isdir'),
      file('/var/lib/isdir/data', 'data'),
      file('/var/lib/isfile', 'own', { mode: 0o600 }),
      directory('/var/lib/isempty', { mode: 0o711 }),
    ],
    paths: [
      '/var/lib/app',
      '/var/lib/app/data',
      '/var/lib/app/new',
      '/var/lib/app/new/file',
      '/var/lib/isdir',
      '/var/lib/isdir/data',
      '/var/lib/isfile',
      '/var/lib/isfile/below',
      '/var/lib/isempty',
      '/var/lib/new',
      '/var/lib/new/file',
    ],
  },
  {
    name: 'odd state',
    state: [
      link('/var/lib/islink', 'isthere'),
      directory('/var/lib/isthere'),
      link('/var/lib/isdangling', 'nowhere'),
      { type: 'fifo', path: '/var/lib/ispipe' },
      directory('/var/lib/issetgid', { mode: 0o2775, gid: 1000 }),
      file('/var/lib/hl-a', 'same'),
      hardLink('/var/lib/hl-b', '/var/lib/hl-a'),
    ],
    paths: [
      '/var/lib/islink',
      '/var/lib/islink/x',
      '/var/lib/isdangling',
      '/var/lib/isdangling/x',
      '/var/lib/ispipe',
      '/var/lib/issetgid/x',
      '/var/lib/issetgid',
      '/var/lib/hl-a',
      '/var/lib/hl-b',
    ],
  },
  {
    name: 'odd names of state',
    state: [directory('/var/lib/secrets', { mode: 0o700 }), file('/var/lib/a b%c', 'odd')],
    paths: [
      '/var/lib/secre*',
      '/var/lib/a b%c',
      '/var/lib/größe',
      '/var/lib/b\\d[e]{f}',
      `/var/lib/"q"'`,
      `/var/lib/${LONG}/${LONG}`,
    ],
  },
  {
    name: 'homes',
    state: [
      directory('/var/home/core/.config', { ...CORE }),
      file('/var/home/core/.bashrc', 'own', CORE),
      link('/var/home/core/link', '.config'),
    ],
    paths: [
      '/home/core/.config/containers/registries.conf',
      '/home/core/.config/new',
      '/home/core/.bashrc',
      '/var/home/core/.bashrc',
      '/home/core/new/file',
      '/home/core/link/x',
      '/home/core',
      '/root/.bashrc',
      '/root/new/file',
      '/home/other/x',
    ],
  },
  {
    name: '/opt and /usr/local',
    state: [file('/var/usrlocal/bin/tool', 'own', { mode: 0o755 }), file('/var/opt/app/conf', 'own')],
    paths: [
      '/usr/local/bin/tool',
      '/usr/local/bin/new',
      '/usr/local/lib/new',
      '/opt/app/conf',
      '/opt/new/file',
      '/var/opt/app/conf',
      '/srv/x',
      '/var/usrlocal/bin/tool',
    ],
  },
  {
    name: "the base's tmpfiles.d",
    base: [
      [
        file(
          '/usr/lib/tmpfiles.d/base.conf',
          'd /var/lib/managed - - - -\nf /var/lib/managed/file - - - - base\nL /var/lib/managed-link - - - - ../lib/managed\n',
        ),
      ],
    ],
    state: [
      directory('/var/lib/managed', { mode: 0o750, ...SVC }),
      file('/var/lib/managed/file', 'base', { mode: 0o640, ...SVC }),
      link('/var/lib/managed-link', '../lib/managed'),
    ],
    paths: [
      '/var/lib/managed',
      '/var/lib/managed/file',
      '/var/lib/managed/new',
      '/var/lib/managed-link',
      '/var/lib/managed-link/x',
    ],
  },
];
