/** The disk fills up at each step in turn, too many for every run: the tree has the old config or the new one. */
import { expect, test } from 'vitest';
import { emptyNodeConfig as empty } from '../../../machineconfig/node-config.ts';
import { deadline, patience } from '../../../test/fixtures/patience.ts';
import { samplePoints } from '../../../test/fixtures/sample.ts';
import { fill, noMounts, smallDisk } from '../../../test/fixtures/small-disk.ts';
import { verifyConfig, writeConfig } from '../../../test/fixtures/standard-content.ts';
import { createTree, first, second, snapshot } from '../../../test/fixtures/written-tree.ts';
import { readManagedPaths } from '../../records/managed-paths.ts';
import { finishOrUndoWrite } from './write-content.ts';

const signal = deadline(600_000);
/** Steps of a sample. */
const STEPS = 6;

test.skipIf(noMounts)(
  'a disk that fills up at any step leaves the old config or the new one',
  { timeout: patience(240_000) },
  async () => {
    const disk = await smallDisk(16 * 1024 * 1024);
    const target = await createTree(disk);
    await writeConfig(target, { from: empty, to: first }, { signal });
    const before = await snapshot(target);
    const managed = await readManagedPaths(target.root);
    let steps = 0;
    const count = () => {
      steps += 1;
    };
    await writeConfig(target, { from: first, to: second }, { signal, beforeStep: count });
    await writeConfig(target, { from: second, to: first }, { signal });
    const filledAt = samplePoints('full disk of a write', steps, STEPS);
    let failures = 0;
    for (const at of filledAt) failures += (await fillAt(at)) ? 1 : 0;
    expect(failures).toBeGreaterThan(Math.min(10, filledAt.length / 3));
    await writeConfig(target, { from: first, to: second }, { signal });
    expect(await verifyConfig(target.root, second)).toEqual([]);

    /** @returns whether the write failed. */
    async function fillAt(step: number): Promise<boolean> {
      let emptied = async () => {};
      let next = 0;
      const beforeStep = async () => {
        if (next === step) emptied = await fill(disk);
        next += 1;
      };
      const failure = await writeConfig(target, { from: first, to: second }, { signal, beforeStep }).then(
        () => undefined,
        (error: unknown) => error,
      );
      await emptied();
      if (failure === undefined) {
        expect(await verifyConfig(target.root, second)).toEqual([]);
        await writeConfig(target, { from: second, to: first }, { signal });
        return false;
      }
      // Where it could not be undone on a full disk, it is at the next start.
      await finishOrUndoWrite(target);
      expect(await snapshot(target), `filled before step ${step}`).toEqual(before);
      expect(await readManagedPaths(target.root)).toEqual(managed);
      return true;
    }
  },
);
