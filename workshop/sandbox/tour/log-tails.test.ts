import { mkdtemp, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { readLogTails } from './log-tails.ts';

test('of a Deployment whose pods went from node to node, the youngest pod is asked', async () => {
  const directory = await mkdtemp(path.join(tmpdir(), 'shale-logs-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const logs = {
    'web-0.log': 'old',
    'web-10.log': 'one\ntwo\n',
    'web-ui-0.log': 'another',
    'daemon-a.log': 'd',
  };
  for (const [name, text] of Object.entries(logs)) {
    const file = path.join(directory, name);
    await writeFile(file, text);
    const at = name === 'web-0.log' ? 1 : 2;
    await utimes(file, at, at);
  }
  expect(await readLogTails(directory, ['web', 'absent', 'daemon-a'])).toEqual([
    { file: path.join(directory, 'web-10.log'), lines: ['one', 'two'] },
    { file: path.join(directory, 'daemon-a.log'), lines: ['d'] },
  ]);
});
