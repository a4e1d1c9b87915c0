/** A write ends whole or not at all, whichever of its steps fails or is the last before the daemon is killed. */
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { execa } from 'execa';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { emptyNodeConfig as empty, type NodeConfig } from '../../../machineconfig/node-config.ts';
import { deadline, patience } from '../../../test/fixtures/patience.ts';
import { sample, samplePoints } from '../../../test/fixtures/sample.ts';
import { verifyConfig, writeConfig } from '../../../test/fixtures/standard-content.ts';
import { createTree, first, second, snapshot } from '../../../test/fixtures/written-tree.ts';
import { programFile } from '../../../workshop/sandbox/programs.ts';
import { readManagedPaths } from '../../records/managed-paths.ts';
import { finishOrUndoWrite, type WriteTarget } from './write-content.ts';

const signal = deadline(600_000);
const killedWrite = programFile(
  path.join(import.meta.dirname, '../../../test/fixtures/killed/killed-write.ts'),
);
/** Steps of a sample. */
const STEPS = 5;

let target: WriteTarget;
beforeEach(async () => {
  target = await createTree();
});
afterEach(() => rm(target.root, { recursive: true }));

/** Writes the config that a tree is to have before. */
const prepare = (tree: WriteTarget, from: NodeConfig) =>
  writeConfig(tree, { from: empty, to: from }, { signal });

/** @returns the steps that a write takes, on a tree of its own. */
async function stepsOf(from: NodeConfig, to: NodeConfig): Promise<readonly string[]> {
  const tree = await createTree();
  const steps: string[] = [];
  await prepare(tree, from);
  await writeConfig(tree, { from, to }, { signal, beforeStep: (step) => void steps.push(step) });
  await rm(tree.root, { recursive: true });
  return steps;
}

it.each([
  ['the first', empty, first],
  ['a later', first, second],
  ['the last', first, empty],
])(
  'a write that fails at any step leaves everything as it was: %s',
  {
    timeout: patience(120_000),
  },
  async (name, from, to) => {
    const steps = await stepsOf(from, to);
    expect(steps.length).toBeGreaterThan(10);
    await prepare(target, from);
    const before = await snapshot(target);
    const managed = await readManagedPaths(target.root);
    for (const failing of sample(`steps of ${name} write`, steps, STEPS)) {
      const beforeStep = (step: string) => {
        if (step === failing) throw new Error(`injected before ${step}`);
      };
      await expect(writeConfig(target, { from, to }, { signal, beforeStep })).rejects.toThrow(
        `injected before ${failing}`,
      );
      expect(await snapshot(target), failing).toEqual(before);
      expect(await readManagedPaths(target.root), failing).toEqual(managed);
    }
    await writeConfig(target, { from, to }, { signal });
    expect(await verifyConfig(target.root, to)).toEqual([]);
  },
);

it('a write that was killed at any step is undone', { timeout: patience(120_000) }, async () => {
  const steps = await stepsOf(first, second);
  await prepare(target, first);
  const before = await snapshot(target);
  for (const index of samplePoints('killed write', steps.length, STEPS)) {
    const killed = await execa(process.execPath, [killedWrite, target.root, `${index}`], { reject: false });
    expect(killed.signal, steps[index]).toBe('SIGKILL');
    expect(await finishOrUndoWrite(target), steps[index]).toBe(index === 0 ? 'nothing' : 'undone');
    expect(await snapshot(target), steps[index]).toEqual(before);
  }
  await writeConfig(target, { from: first, to: second }, { signal });
  expect(await verifyConfig(target.root, second)).toEqual([]);
});
