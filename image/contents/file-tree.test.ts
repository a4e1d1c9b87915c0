import { expect, test } from 'vitest';
import { nodeAt, type TreeNode } from './file-tree.ts';

type Directory = Extract<TreeNode, { readonly kind: 'directory' }>;
const FILE: TreeNode = { kind: 'file' };
const link = (target: string): TreeNode => ({ kind: 'link', target });
const directory = (children: Readonly<Record<string, TreeNode>>): Directory => ({
  kind: 'directory',
  children: new Map(Object.entries(children)),
});

/** @returns a root with as many links as are to be followed to a file, each to the next. */
function chain(links: number): Directory {
  const names = Array.from({ length: links }, (_, at) => [`l${at}`, link(`l${at + 1}`)] as const);
  return directory({ ...Object.fromEntries(names), [`l${links}`]: FILE });
}

test('as many links are followed as the kernel follows (path_resolution(7))', () => {
  expect(nodeAt(chain(40), '/l0')).toBe(FILE);
  expect(nodeAt(chain(41), '/l0')).toBeUndefined();
  expect(nodeAt(directory({ a: link('b'), b: link('/a') }), '/a')).toBeUndefined();
});

test.each([
  ['an absolute target, within the image', '/etc/absolute'],
  ['a relative target', '/etc/relative'],
  ['a target above the root, which is the root', '/etc/above'],
  ['a directory that is a link', '/lib/os'],
  ['a path with empty and "." elements', 'usr//./lib/os'],
])('a file is found by %s', (_how, path) => {
  const root = directory({
    lib: link('usr/lib'),
    etc: directory({
      absolute: link('/usr/lib/os'),
      relative: link('../lib/os'),
      above: link('../../../usr/lib/os'),
    }),
    usr: directory({ lib: directory({ os: FILE }) }),
  });
  expect(nodeAt(root, path)).toBe(FILE);
});

test.each(['/etc/none', '/file/below', '/etc/broken'])('at %s there is nothing', (path) => {
  const root = directory({ file: FILE, etc: directory({ broken: link('/gone/away') }) });
  expect(nodeAt(root, path)).toBeUndefined();
});
