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
    `L+ /var/l - - - - ${argument}`,
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
    `f+~ /var/a 1755 core 0 - ${content.toString('base64')}`,
    'd "/var/b c" 0007 0 core - -',
  ]);
  expect(formatTmpfiles([])).toBe('');
});
