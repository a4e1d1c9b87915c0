import { expect, test } from 'vitest';
import type { FileFacts } from './file-facts.ts';
import type { TreeNode } from './file-tree.ts';
import { contentsOf } from './image-contents.ts';
import type { PackageFormat } from './package.ts';

/** @param files their facts by path. */
function treeOf(files: Readonly<Record<string, FileFacts>>) {
  const root = { kind: 'directory' as const, children: new Map<string, TreeNode>() };
  for (const [path, facts] of Object.entries(files)) {
    let at = root;
    const [, ...way] = path.split('/');
    for (const name of way.slice(0, -1)) {
      const below = at.children.get(name);
      const next = below?.kind === 'directory' ? (below as typeof root) : { ...root, children: new Map() };
      at.children.set(name, next);
      at = next;
    }
    at.children.set(way.at(-1) ?? '', { kind: 'file', facts });
  }
  return { root, users: new Map<string, number>(), groups: new Map<string, number>() };
}

const packages = (format: PackageFormat): FileFacts => ({ kind: 'packages', format, packages: [] });

test.each<[PackageFormat, first: string, second: string]>([
  ['apk', '/usr/lib/apk/db/installed', '/lib/apk/db/installed'],
  ['rpm', '/usr/lib/sysimage/rpm/rpmdb.sqlite', '/usr/share/rpm/Packages.db'],
  ['dpkg', '/var/lib/dpkg/status', '/usr/lib/sysimage/dpkg/status'],
])('of two databases of %s only the one that its tools read counts', (format, first, second) => {
  const facts = packages(format);
  const pathsOf = (...paths: string[]) => {
    const tree = treeOf(Object.fromEntries(paths.map((path) => [path, facts])));
    return contentsOf(tree, 'amd64').databases.map(({ path }) => path);
  };
  expect(pathsOf(second, first)).toEqual([first]);
  expect(pathsOf(second)).toEqual([second]);
  expect(pathsOf()).toEqual([]);
});

test('databases of several formats count side by side', () => {
  const tree = treeOf({
    '/lib/apk/db/installed': packages('apk'),
    '/var/lib/dpkg/status': packages('dpkg'),
  });
  expect(
    contentsOf(tree, 'amd64')
      .databases.map(({ format }) => format)
      .toSorted(),
  ).toEqual(['apk', 'dpkg']);
});
