import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import { nodePaths } from '../api/names.ts';
import { atTarget } from '../test/fixtures/daemon-at-target.ts';
import { eventually, nodeObject, runLoop } from '../test/fixtures/daemon-loop.ts';
import { writeRecord } from './records/durable-json.ts';

const fileOf = (root: string, name: string) => path.join(root, nodePaths.state, name);

test.each([
  'journal.json',
  'write.json',
  'current.json',
  'armed-boot.json',
  'last-update.json',
  'last-repair.json',
])(
  'a daemon that finds %s of a later version takes no step, leaves it as it is, and reports what to do',
  async (name) => {
    const record = { version: 2, later: 'what only that version knows' };
    const { root, server, steps } = await runLoop({
      object: nodeObject(),
      before: async (root) => {
        await atTarget(root);
        await writeRecord(fileOf(root, name), record);
      },
    });
    await eventually(() =>
      expect(server.condition('NodeDegraded')).toBe(
        `DaemonFailed: ${fileOf(root, name)}: a later version of Shale wrote this record (version 2; this daemon reads version 1). Install that version of Shale again, or a later one`,
      ),
    );
    expect(new Set(steps)).toEqual(new Set(['observe failed']));
    expect(JSON.parse(await readFile(fileOf(root, name), 'utf8'))).toEqual(record);
  },
);
