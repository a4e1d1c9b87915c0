import { expect, test } from 'vitest';
import type { IgnitionLink, Storage } from './config.ts';
import { ContentsReader, DEFAULT_LIMITS } from './contents.ts';
import { Report } from './report.ts';
import { checkPathEntries } from './validate-paths.ts';

/** @returns each problem as `path: reason; expected`. */
function problemsOf(storage: Storage): string[] {
  const report = new Report();
  checkPathEntries(storage, new Set(), new ContentsReader(DEFAULT_LIMITS), report);
  return report.problems.map(({ path, reason, expected }) => `${path}: ${reason}; ${expected}`);
}

const IS_DIRECTORY =
  '$.storage.links[0].target: is a directory of this config; a file, because the link is hard';

test.each<[string, Partial<IgnitionLink>, readonly string[]]>([
  ['a symbolic link to a directory of the config', { target: '/etc/d' }, []],
  ['a symbolic link that says so', { target: '/etc/d', hard: false }, []],
  ['a hard link to such a directory', { target: '/etc/d', hard: true }, [IS_DIRECTORY]],
  ['a hard link to it by another text', { target: '/etc/x/..//d', hard: true }, [IS_DIRECTORY]],
  // Ignition joins it to the path of the link itself.
  ['a hard link to it by a relative text', { target: '../d', hard: true }, [IS_DIRECTORY]],
  ['a hard link to something else', { target: '/etc/file', hard: true }, []],
  ['a link to nothing', { target: '' }, ['$.storage.links[0].target: is missing; what the link points to']],
])('%s', (_what, link, problems) => {
  const directories = [{ path: '/etc/d' }];
  expect(problemsOf({ directories, links: [{ path: '/etc/l', ...link }] })).toEqual(problems);
});

test.each<[number, readonly string[]]>([
  [0o7777, []],
  [0o10000, ['$.storage.directories[0].mode: is 4096, in octal 010000; 0 to 07777 (4095)']],
  [0, []],
  [-1, ['$.storage.directories[0].mode: is -1, in octal 0-1; 0 to 07777 (4095)']],
])('a directory with the mode %i', (mode, problems) => {
  expect(problemsOf({ directories: [{ path: '/etc/d', mode }] })).toEqual(problems);
});

const MAX_ID = 0xfffffffe;
const range = `0 to ${MAX_ID}`;

test.each(['user', 'group'] as const)(
  'the %s of an entry is an id of 32 bits but the last, or a name',
  (who) => {
    const problemsWith = (owner: { readonly id?: number; readonly name?: string }) =>
      problemsOf({ directories: [{ path: '/etc/d', [who]: owner }] });
    const at = `$.storage.directories[0].${who}`;
    for (const owner of [
      { id: 0 },
      { id: MAX_ID },
      { name: 'core' },
      { name: 'a@b.example' },
      { id: 1, name: '' },
    ])
      expect(problemsWith(owner)).toEqual([]);
    for (const id of [-1, MAX_ID + 1]) expect(problemsWith({ id })).toEqual([`${at}.id: is ${id}; ${range}`]);
    expect(problemsWith({ id: 1, name: 'core' })).toEqual([`${at}: has both id and name; one of them`]);
    for (const name of ['12', '-x', 'a b', 'a:b', 'a/b', 'a\nb', 'n'.repeat(256)])
      expect(problemsWith({ name })).toEqual([expect.stringContaining(`${at}.name: `)]);
    expect(problemsWith({ name: 'n'.repeat(255) })).toEqual([]);
  },
);

test.each([
  [
    '/',
    [
      '$.storage.directories[0].path: is the root directory; an absolute path without empty, "." or ".." elements',
    ],
  ],
  ['/etc', []],
])('a directory with the path %s', (path, problems) => {
  expect(problemsOf({ directories: [{ path }] })).toEqual(problems);
});
