/**
 * The daemon is killed before each of its changes of the disk in turn, started again, and has to come to where it was
 * going: whole, without another reboot than the update asks for, without a restart that it does not ask for. Outside of
 * `make soak` some of the updates are drawn, and for each of them some of the changes.
 */
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { KillBench } from '../test/fixtures/killed/kill-bench.ts';
import { tryPoints } from '../test/fixtures/killed/try-points.ts';
import {
  ABANDONED_FILE,
  renderedConfigs,
  startTargets,
  type TestUpdate,
  testUpdates,
} from '../test/fixtures/killed/updates.ts';
import { CHRONY } from '../test/fixtures/node-configs.ts';
import { patience } from '../test/fixtures/patience.ts';
import { everyCase, sample } from '../test/fixtures/sample.ts';
import { verifyConfig } from '../test/fixtures/standard-content.ts';
import { noDirectoryNodes } from '../test/fixtures/test-node.ts';
import { directoryNodeLayout, readDirectoryMachine } from '../workshop/sandbox/node/directory-host.ts';
import { readServiceRecords } from '../workshop/sandbox/node/service-recorder.ts';
import { nodeConfigOf } from './records/current.ts';

const drawn = sample('updates that a daemon is killed in', testUpdates, 4);

let bench: KillBench;
beforeAll(async () => {
  if (noDirectoryNodes === undefined) bench = await KillBench.create();
}, patience(120_000));
afterAll(() => bench?.[Symbol.asyncDispose]());

describe.skipIf(noDirectoryNodes !== undefined)('a daemon that is killed at any point of', () => {
  // By %s: Vitest shortens a $name, and -t would not find it.
  const named = drawn.map((update) => [update.name, update] as const);
  test.each(named)('%s ends where it was going', { timeout: patience(900_000) }, async (_name, update) => {
    const prepared = await bench.prepare(update);
    const tried = await tryPoints({
      subject: update.name,
      count: () => bench.countChanges(update, prepared),
      sampleSize: 3,
      attempt: async (point) => {
        const { killed, dir } = await bench.killAndRestart(update, prepared, point);
        await expectEnded(update, { before: prepared, after: dir, where: `killed before change ${point}` });
        await bench.remove(dir);
        return killed;
      },
    });
    await bench.remove(prepared);
    process.stderr.write(`killed at ${tried} points: ${update.name}\n`);
    expect(tried).toBeGreaterThan(everyCase ? 4 : 2);
  });
});

interface Nodes {
  /** The prepared node's directory. */
  readonly before: string;
  readonly after: string;
  readonly where: string;
}

async function expectEnded(update: TestUpdate, { before, after, where }: Nodes): Promise<void> {
  const [then, now] = [directoryNodeLayout(before), directoryNodeLayout(after)];
  expect(await readFile(path.join(now.root, CHRONY), 'utf8'), where).toBe(update.content);
  const boots = (await readDirectoryMachine(now)).bootCount - (await readDirectoryMachine(then)).bootCount;
  const more = update.retarget === undefined ? 0 : 1;
  expect(boots - (update.boots - update.killedIn), where).toBeOneOf([0, more]);
  const restarts = (await readServiceRecords(now))
    .slice((await readServiceRecords(then)).length)
    .filter(({ action }) => action === 'restart');
  expect(restarts.length > 0, where).toBe(update.restarts);
  const left = await readdir(path.join(now.root, 'var/lib/shale'));
  expect(left.filter((name) => name.startsWith('write') || name === 'journal.json')).toEqual([]);
  const { from, target, retarget, rollsBack } = update;
  const end = rollsBack && from !== 'stock' ? startTargets[from] : (retarget ?? target);
  expect(existsSync(path.join(now.root, ABANDONED_FILE)), where).toBe(false);
  const config = renderedConfigs.find(({ metadata }) => metadata.name === end.config);
  // What standard mode ends in is on the disk in all its parts.
  if (end.mode === 'Standard' && config !== undefined) {
    expect(await verifyConfig(now.root, nodeConfigOf(config)), where).toEqual([]);
  }
}
