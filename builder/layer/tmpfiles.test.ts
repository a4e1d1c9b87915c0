import { expect, test } from 'vitest';
import { formatTmpfiles } from './tmpfiles.ts';

test.each([
  ['../app', '../app'],
  ['-', String.raw`\x2d`],
  [' a ', String.raw`\x20a\x20`],
  ['\t', String.raw`\x09`],
  ['a\nb\x1f\x7f', String.raw`a\x0ab\x1f\x7f`],
  ['x\u2028', String.raw`x\xe2\x80\xa8`],
  [String.raw`%c\n`, String.raw`%%c\\n`],
])('a link to %j has the argument %s', (target, argument) => {
  expect(formatTmpfiles([{ kind: 'link', path: '/var/l', target }]).split('\n')[1]).toBe(
    `L /var/l - - - - ${argument}`,
  );
});

test('lines are in the order of their paths, and owners by id or by name', () => {
  const [user, group] = [{ id: 0 }, { name: 'core' }];
  const directory = (path: string, mode: number) => ({ kind: 'directory', path, mode, user, group }) as const;
  const content = Buffer.from('text');
  expect(
    formatTmpfiles([
      directory('/var/b c', 0o7),
      { kind: 'file', path: '/var/a', mode: 0o1755, user: group, group: user, contents: content },
      { ...directory('/etc/c', 0o640), kind: 'ownership' },
    ])
      .trimEnd()
      .split('\n')
      .slice(1),
  ).toEqual([
    'z /etc/c 0640 0 core - -',
    `f~ /var/a 1755 core 0 - ${content.toString('base64')}`,
    'd "/var/b c" 0007 0 core - -',
  ]);
  expect(formatTmpfiles([])).toBe('');
});

test('a pattern character in the path of an owner stands for itself', () => {
  const owners = { mode: 0o644, user: { name: 'core' }, group: { id: 0 } };
  expect(formatTmpfiles([{ kind: 'ownership', path: '/etc/s?adow{a,b}', ...owners }]).split('\n')[1]).toBe(
    String.raw`z "/etc/s\\?adow\\{a\\,b\\}" 0644 core 0 - -`,
  );
});

const ids = { user: { id: 0 }, group: { id: 0 } };
const file = (path: string, size = 1) =>
  ({ kind: 'file', path, mode: 0o644, ...ids, contents: Buffer.alloc(size) }) as const;
const pathsOf = (fragment: string) =>
  fragment.split('\n').flatMap((line) => (/^[fdLz]/.test(line) ? [line.split(' ')[1]] : []));

test('a file that no line can hold is left to the daemon, and keeps no other from being created', () => {
  expect(pathsOf(formatTmpfiles([file('/var/big', 790_000), file('/var/small'), file('/var/a\tb')]))).toEqual(
    ['/var/small'],
  );
});

test('what lies in a directory of somebody else is left to the daemon, where systemd would not go', () => {
  const owned = (path: string, id: number) =>
    ({ kind: 'directory', path, mode: 0o755, user: { id }, group: { id } }) as const;
  const lines = [
    owned('/var/lib/svc', 998),
    owned('/var/lib/svc/own', 998),
    owned('/var/lib/svc/root', 0),
    ...['/var/lib/svc/x', '/var/lib/svc/own/x', '/var/lib/svc/new/x', '/var/lib/svc/root/x'].map((at) =>
      file(at),
    ),
    ...['/home/core/x', '/home/core/.config/x', '/var/home/core/.config/x', '/home/x'].map((at) => file(at)),
  ];
  expect(pathsOf(formatTmpfiles(lines))).toEqual([
    '/home/core/x',
    '/home/x',
    '/var/lib/svc',
    '/var/lib/svc/own',
    '/var/lib/svc/own/x',
    '/var/lib/svc/root',
    '/var/lib/svc/x',
  ]);
});
