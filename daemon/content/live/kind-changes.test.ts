import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { deadline } from '../../../test/fixtures/patience.ts';
import { sample } from '../../../test/fixtures/sample.ts';
import { compareTrees, readTree } from '../../files/read-tree.ts';
import { planTreeChanges } from '../../files/tree-change.ts';
import { contentDigest } from '../../files/tree-entry.ts';
import { takeSteps, type WriteStep } from '../../files/write-step.ts';
import { intendManagedPaths, type ManagedPaths } from '../../records/managed-paths.ts';
import { planEtc } from './live-plan.ts';
import { untouchedManagedPaths } from './managed-etc.ts';

/**
 * Whatever kind of thing was at a path comes to be any other, in /usr and in /etc, also when it is killed on the way.
 */
const signal = deadline(120_000);

/** What lies at `p`, below the directory that is given. Beside it are a file and a directory that links lead to. */
const kinds: Readonly<Record<string, (top: string, text: string) => Promise<unknown>>> = {
  nothing: async () => undefined,
  'a file': (top, text) => writeFile(path.join(top, 'p'), text),
  'a link to a file': (top) => symlink('file', path.join(top, 'p')),
  'a link to a directory': (top) => symlink('sub', path.join(top, 'p')),
  'another link to a directory': (top) => symlink('../top/other', path.join(top, 'p')),
  'a link to nothing': (top) => symlink('none', path.join(top, 'p')),
  'an empty directory': (top) => mkdir(path.join(top, 'p'), { mode: 0o711 }),
  'a directory with a file': async (top, text) => {
    await mkdir(path.join(top, 'p'));
    await writeFile(path.join(top, 'p/same'), text);
  },
  'a deep directory': async (top, text) => {
    await mkdir(path.join(top, 'p/deep/er'), { recursive: true });
    await writeFile(path.join(top, 'p/deep/er/file'), text);
    await writeFile(path.join(top, 'p-'), text);
    await symlink('deep', path.join(top, 'p/link'));
  },
};
const all = Object.keys(kinds);
const changes = all.flatMap((from) => all.flatMap((to) => (from === to ? [] : [{ from, to }])));
/** Changes of a sample, of all 72. */
const CHANGES = 24;

async function makeTree(top: string, kind: string, text: string): Promise<void> {
  for (const directory of ['sub', 'other']) {
    await mkdir(path.join(top, directory), { recursive: true });
    await writeFile(path.join(top, directory, 'same'), 'same');
    await writeFile(path.join(top, directory, directory), directory);
  }
  await writeFile(path.join(top, 'file'), 'file');
  await kinds[kind]?.(top, text);
}

/** The running root, what it booted, and what it is to have. */
async function threeTrees(place: 'usr' | 'etc', from: string, to: string) {
  const dir = await mkdtemp(path.join(tmpdir(), 'shale-kinds-'));
  onTestFinished(() => rm(dir, { recursive: true }));
  const deployment = (name: string) => ({
    id: name,
    root: path.join(dir, name),
    labels: {},
    kernelArguments: [],
  });
  const [root, booted, staged] = [path.join(dir, 'root'), deployment('booted'), deployment('staged')];
  const inImage = place === 'usr' ? 'usr' : 'usr/etc';
  await makeTree(path.join(root, place, 'top'), from, 'from');
  await makeTree(path.join(booted.root, inImage, 'top'), from, 'from');
  await makeTree(path.join(staged.root, inImage, 'top'), to, 'to');
  const snapshot = async (top: string) =>
    [...(await readTree(top, `/${place}`, signal))]
      .map(([at, entry]) => `${at} ${contentDigest(entry)}`)
      .toSorted();
  return {
    root,
    booted,
    staged,
    running: () => snapshot(path.join(root, place)),
    wanted: () => snapshot(path.join(staged.root, inImage)),
  };
}

type Trees = Awaited<ReturnType<typeof threeTrees>>;

interface Plan {
  readonly steps: readonly WriteStep[];
  /** The record while they are taken. */
  readonly managed: ManagedPaths;
}

async function planUsr({ root, staged }: Trees, managed: ManagedPaths): Promise<Plan> {
  const [current, target] = [path.join(root, 'usr'), path.join(staged.root, 'usr')];
  const difference = await compareTrees(current, target, '/usr', new Set(), signal);
  const steps = planTreeChanges({ ...difference, source: (name) => path.join(staged.root, name) });
  return { steps, managed };
}

async function planManagedEtc({ root, booted, staged }: Trees, managed: ManagedPaths): Promise<Plan> {
  const { etc, etcDigests } = await planEtc({ root, booted, staged, managed }, signal);
  return { steps: etc, managed: intendManagedPaths(managed, etcDigests) };
}

const NOTHING_MANAGED: ManagedPaths = new Map();

describe.each([
  ['usr', planUsr],
  ['etc', planManagedEtc],
] as const)('in /%s', (place, plan) => {
  test.each(sample(`changes of kind in /${place}`, changes, CHANGES))(
    '$from becomes $to, whichever step is the last before a kill',
    async ({ from, to }) => {
      const whole = await threeTrees(place, from, to);
      const wanted = await whole.wanted();
      const { steps, managed } = await plan(whole, NOTHING_MANAGED);
      await takeSteps(whole, steps, { signal });
      expect(await whole.running()).toEqual(wanted);
      expect((await plan(whole, managed)).steps).toEqual([]);
      await takeSteps(whole, steps, { signal });
      expect(await whole.running()).toEqual(wanted);

      for (const [killed] of steps.entries()) {
        const trees = await threeTrees(place, from, to);
        const before = await plan(trees, NOTHING_MANAGED);
        await takeSteps(trees, before.steps.slice(0, killed), { signal });
        const after = await plan(trees, before.managed);
        await takeSteps(trees, after.steps, { signal });
        expect(await trees.running(), JSON.stringify(before.steps.slice(0, killed))).toEqual(wanted);
      }
    },
  );
});

test('a link of /etc that is gone while the directory is made in its place is no removal by hand', async () => {
  const trees = await threeTrees('etc', 'a link to a directory', 'a directory with a file');
  const { managed } = await planManagedEtc(trees, NOTHING_MANAGED);
  await rm(path.join(trees.root, 'etc/top/p'));
  await takeSteps(trees, (await planManagedEtc(trees, managed)).steps, { signal });
  expect(await trees.running()).toEqual(await trees.wanted());
});

test('what is gone with a directory is so, although a link now leads to a file of its name', async () => {
  const trees = await threeTrees('etc', 'a directory with a file', 'a link to a directory');
  const { steps, managed } = await planManagedEtc(trees, NOTHING_MANAGED);
  await takeSteps(trees, steps, { signal });
  const untouched = await untouchedManagedPaths(trees.root, managed);
  expect([...untouched.keys()].toSorted()).toEqual(['/etc/top/p', '/etc/top/p/same']);
});
