/** A lab machine ends with the process that started it, however that ends. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { deadline, patience } from '../fixtures/patience.ts';
import { FIRST_TIME_MS, labRootfs, noLab } from './lab.ts';

const BOOT_AND_WAIT = path.join(import.meta.dirname, 'boot-and-wait.ts');
const GONE_MS = 10_000;

test.skipIf(noLab !== undefined)(
  'a machine is gone when its owner is killed',
  async () => {
    const directory = await mkdtemp(path.join(tmpdir(), 'shale-lab-'));
    const root = await labRootfs();
    const owner = spawn(process.execPath, [BOOT_AND_WAIT, root, directory], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    try {
      const [leader] = (await once(createInterface(owner.stdout), 'line')) as [string];
      expect(await readFile(`/proc/${leader}/comm`, 'utf8')).toBe('systemd\n');
      owner.kill('SIGKILL');
      await untilGone(`/proc/${leader}`);
      expect(await readFile('/proc/self/mountinfo', 'utf8')).not.toContain(root);
    } finally {
      owner.kill('SIGKILL');
      await rm(directory, { recursive: true, force: true });
    }
  },
  patience(FIRST_TIME_MS),
);

async function untilGone(place: string): Promise<void> {
  const signal = deadline(GONE_MS);
  while (existsSync(place)) await delay(20, undefined, { signal });
}
