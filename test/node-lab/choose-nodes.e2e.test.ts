/** Whether this host can boot machines with systemd, tried by booting one. */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { chooseNodes, obstacleToSystemdNodes } from '../../workshop/sandbox/requirements.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { FIRST_TIME_MS, labRootfs, noLab } from './lab.ts';

describe.skipIf(noLab !== undefined)(
  'where machines with systemd can boot',
  { timeout: patience(FIRST_TIME_MS) },
  () => {
    it("a sandbox's nodes are such machines where nobody asks for others", async () => {
      const signal = deadline(FIRST_TIME_MS);
      const none = () => undefined;
      expect(await chooseNodes('auto', none, signal)).toEqual({ kind: 'systemd' });
      expect(await chooseNodes('directory', none, signal)).toEqual({ kind: 'directory' });
    });

    it('what does not boot is reported in one line, and the trial leaves nothing', async () => {
      const signal = deadline(FIRST_TIME_MS);
      const rootfs = await labRootfs();
      const before = await readdir(rootfs);
      const empty = await mkdtemp(path.join(tmpdir(), 'shale-empty-'));
      try {
        expect(await obstacleToSystemdNodes(async () => empty, signal)).toMatch(
          /^the machine .* did not boot.*$/,
        );
        expect(await readdir(empty)).toEqual([]);
        expect(await obstacleToSystemdNodes(async () => rootfs, signal)).toBeUndefined();
        expect(await readdir(rootfs)).toEqual(before);
      } finally {
        await rm(empty, { recursive: true });
      }
    });
  },
);
