import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { subjectOf, textOf } from './config-text.ts';
import { type ConfigChange, emptyNodeConfig, type NodeConfig } from './node-config.ts';

const owner = { user: { id: 0 }, group: { name: 'wheel' } };
const KEY = Buffer.from('\0\0\0\x0bssh-ed25519 and the key itself').toString('base64');
const FINGERPRINT = createHash('sha256').update(Buffer.from(KEY, 'base64')).digest('base64').replace('=', '');
const BINARY = Buffer.from([0xff, 0xfe]);

const config: NodeConfig = {
  ...emptyNodeConfig,
  files: new Map(
    [
      { path: '/etc/app.conf', contents: Buffer.from('a=1\n'), mode: 0o644, ...owner },
      { path: '/etc/binary', contents: BINARY, mode: 0o4755, ...owner },
      { path: '/etc/zero', contents: Buffer.from('a\0'), mode: 0, ...owner },
    ].map((file) => [file.path, file]),
  ),
  directories: new Map([['/etc/app.d', { path: '/etc/app.d', mode: 0o1777, ...owner }]]),
  links: new Map([
    ['/etc/soft', { path: '/etc/soft', target: '../x', hard: false, ...owner }],
    ['/etc/hard', { path: '/etc/hard', target: '/etc/x', hard: true, ...owner }],
  ]),
  units: new Map(
    [
      { name: 'on.service', enabled: true, masked: false, contents: '[Unit]\n', dropins: new Map() },
      { name: 'off.service', enabled: false, masked: true, dropins: new Map() },
      {
        name: 'as-is.service',
        masked: false,
        dropins: new Map([
          ['20-b.conf', 'second\n'],
          ['10-a.conf', 'first\n'],
        ]),
      },
    ].map((unit) => [unit.name, unit]),
  ),
  sshKeys: new Map([['core', [`no-pty ssh-ed25519 ${KEY} me@host`, '# no key']]]),
  passwordHashes: new Map([['core', '$6$salt$hash']]),
  kernelArguments: ['quiet', 'audit=1'],
  kernelType: 'realtime',
  fips: true,
};

const file = (path: string): ConfigChange => ({ kind: 'file', path, change: 'changed', what: ['contents'] });
const unit = (name: string): ConfigChange => ({ kind: 'unit', name, change: 'changed' });
const password = (change: ConfigChange['change']): ConfigChange => ({
  kind: 'passwordHash',
  user: 'core',
  change,
});

test.each<[ConfigChange, subject: string, text: string]>([
  [file('/etc/app.conf'), '/etc/app.conf', '# mode 0644, owner 0:wheel\na=1\n'],
  [
    file('/etc/binary'),
    '/etc/binary',
    `# mode 4755, owner 0:wheel\n# 2 bytes, sha256 ${createHash('sha256').update(BINARY).digest('hex')}\n`,
  ],
  [
    file('/etc/zero'),
    '/etc/zero',
    `# mode 0000, owner 0:wheel\n# 2 bytes, sha256 ${createHash('sha256').update('a\0').digest('hex')}\n`,
  ],
  [{ kind: 'directory', path: '/etc/app.d', change: 'added' }, '/etc/app.d', '# mode 1777, owner 0:wheel\n'],
  [{ kind: 'link', path: '/etc/soft', change: 'added' }, '/etc/soft', '# link to ../x\n'],
  [{ kind: 'link', path: '/etc/hard', change: 'added' }, '/etc/hard', '# hard link to /etc/x\n'],
  [unit('on.service'), 'on.service', '# enabled\n[Unit]\n'],
  [unit('off.service'), 'off.service', '# disabled, masked\n'],
  [
    unit('as-is.service'),
    'as-is.service',
    '# left as it is\n# drop-in 10-a.conf\nfirst\n# drop-in 20-b.conf\nsecond\n',
  ],
  [
    { kind: 'sshKey', user: 'core', change: 'changed' },
    'SSH keys of core',
    `no-pty ssh-ed25519 SHA256:${FINGERPRINT} me@host\n# no key\n`,
  ],
  [password('changed'), 'password of core', '# another password hash\n'],
  [password('added'), 'password of core', '# a password hash\n'],
  [{ kind: 'field', field: 'kernelArguments', change: 'changed' }, 'kernelArguments', 'quiet\naudit=1\n'],
  [{ kind: 'field', field: 'kernelType', change: 'changed' }, 'kernelType', 'realtime\n'],
  [{ kind: 'field', field: 'fips', change: 'changed' }, 'fips', 'true\n'],
])('%j is of a subject, which has a text', (change, subject, text) => {
  expect(subjectOf(change)).toBe(subject);
  expect(textOf(config, change, 'after')).toBe(text);
});

describe('the text of what a config does not have', () => {
  test.each<ConfigChange>([
    file('/etc/none'),
    { kind: 'directory', path: '/etc/none', change: 'removed' },
    { kind: 'link', path: '/etc/none', change: 'removed' },
    unit('none.service'),
    { kind: 'sshKey', user: 'none', change: 'removed' },
    { kind: 'passwordHash', user: 'none', change: 'removed' },
    { kind: 'field', field: 'extensions', change: 'changed' },
  ])('is empty: %j', (change) => {
    expect(textOf(config, change, 'before')).toBe('');
  });
});

test('a password is told by whether it is another one, never by its hash', () => {
  expect(textOf(config, password('changed'), 'before')).toBe('# a password hash\n');
  expect(textOf(config, password('removed'), 'before')).toBe('# a password hash\n');
});
