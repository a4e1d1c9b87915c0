/**
 * The disk is full before each of the daemon's changes in turn: it reports that, leaves the node as it was or as it is
 * to be, and goes on by itself once there is room.
 */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { KillBench } from '../test/fixtures/killed/kill-bench.ts';
import { tryPoints } from '../test/fixtures/killed/try-points.ts';
import { testUpdates } from '../test/fixtures/killed/updates.ts';
import { CHRONY } from '../test/fixtures/node-configs.ts';
import { patience } from '../test/fixtures/patience.ts';
import { everyCase } from '../test/fixtures/sample.ts';
import { noDirectoryNodes } from '../test/fixtures/test-node.ts';
import { directoryNodeLayout, readDirectoryMachine } from '../workshop/sandbox/node/directory-host.ts';

let bench: KillBench;
beforeAll(async () => {
  if (noDirectoryNodes === undefined) bench = await KillBench.create();
}, patience(120_000));
afterAll(() => bench?.[Symbol.asyncDispose]());

const updates = testUpdates.filter(({ boots }) => boots === 0);

describe.skipIf(noDirectoryNodes !== undefined)('a disk that is full at any point of', () => {
  test.each(updates)('$name is reported, and waited for', { timeout: patience(900_000) }, async (update) => {
    const prepared = await bench.prepare(update);
    const before = await readDirectoryMachine(directoryNodeLayout(prepared));
    let reports = 0;
    const tried = await tryPoints({
      subject: update.name,
      count: () => bench.countChanges(update, prepared),
      sampleSize: 4,
      attempt: async (point) => {
        const { filled, reported, dir } = await bench.fillAndEmpty(update, prepared, point);
        const where = `full before change ${point}; it reported: ${reported}`;
        const layout = directoryNodeLayout(dir);
        expect(await readFile(path.join(layout.root, CHRONY), 'utf8'), where).toBe(update.content);
        // What could not be applied live may take a reboot, for which there is a grant; never two.
        const boots = (await readDirectoryMachine(layout)).bootCount - before.bootCount;
        expect(boots, where).toBeLessThan(2);
        await bench.remove(dir);
        if (filled && reported !== undefined) reports += 1;
        return filled;
      },
    });
    await bench.remove(prepared);
    process.stderr.write(`full at ${tried} points, ${reports} reported: ${update.name}\n`);
    if (everyCase) expect(reports).toBeGreaterThan(5);
  });
});
