/** The kernel is the independent reader: paths resolved by chroot in a real tree. */
import { chmod, copyFile, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { patience } from '../test/fixtures/patience.ts';
import { seed } from '../test/fixtures/sample.ts';
import { type BaseEntry, resolveInBase } from './base-tree.ts';

const CASES = 60;
const directory: BaseEntry = { kind: 'directory', mode: 0o755, uid: 0, gid: 0, isEmpty: false };

const name = fc.constantFrom('a', 'b', 'c', 'd');
const absolute = fc.array(name, { minLength: 1, maxLength: 4 }).map((parts) => `/${parts.join('/')}`);
const target = fc
  .tuple(fc.constantFrom('', '', '/', '../', '../../', '../../../'), absolute)
  .map(([start, rest]) => `${start}${rest.slice(1)}`);
const entry: fc.Arbitrary<BaseEntry> = fc.oneof(
  { weight: 4, arbitrary: fc.constant(directory) },
  { weight: 4, arbitrary: target.map((to): BaseEntry => ({ kind: 'link', target: to })) },
  { weight: 1, arbitrary: fc.constant<BaseEntry>({ kind: 'file' }) },
);
const trees = fc.array(fc.tuple(absolute, entry), { maxLength: 16 });

/** Makes a tree in a root; what has no directory to be in is left out. @returns what is there. */
async function makeTree(root: string, entries: readonly (readonly [string, BaseEntry])[]) {
  const made = new Map<string, BaseEntry>();
  for (const [at, each] of entries.toSorted(([a], [b]) => a.split('/').length - b.split('/').length)) {
    const parent = path.posix.dirname(at);
    if (made.has(at) || (parent !== '/' && made.get(parent)?.kind !== 'directory')) continue;
    const place = path.join(root, at);
    if (each.kind === 'directory') await mkdir(place);
    else if (each.kind === 'link') await symlink(each.target, place);
    else await writeFile(place, '');
    made.set(at, each);
  }
  return made;
}

const FIND = 'while read -r p; do (cd -P "$p" && pwd -P) || echo none; done';

test(
  'a path is resolved as the kernel resolves it in a root of its own',
  async () => {
    const dir = await mkdtemp(path.join(tmpdir(), 'kernel-paths-'));
    try {
      const asked = fc.array(absolute, { minLength: 5, maxLength: 20 });
      await fc.assert(
        fc.asyncProperty(trees, asked, async (entries, parents) => {
          const root = await mkdtemp(path.join(dir, 'root-'));
          const made = await makeTree(root, entries);
          await copyFile('/usr/bin/busybox', path.join(root, 'sh'));
          await chmod(path.join(root, 'sh'), 0o755);
          const { stdout } = await execa('chroot', [root, '/sh', '-c', FIND], {
            input: `${parents.join('\n')}\n`,
          });
          const kernel = stdout.split('\n');
          const isDirectory = (at: string) => at === '/' || made.get(at)?.kind === 'directory';
          for (const [index, parent] of parents.entries()) {
            const resolved = resolveInBase({ at: (at) => made.get(at) }, `${parent}/x`);
            const real = resolved.kind === 'place' ? path.posix.dirname(resolved.path) : undefined;
            expect(real !== undefined && isDirectory(real) ? real : 'none').toBe(kernel[index]);
          }
          await rm(root, { recursive: true });
        }),
        { seed, numRuns: CASES, endOnFailure: true },
      );
    } finally {
      await rm(dir, { recursive: true });
    }
  },
  patience(120_000),
);
