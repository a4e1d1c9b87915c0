import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { deadline } from '../../../test/fixtures/patience.ts';
import {
  forgetStaged,
  isFinalizationLocked,
  lockFinalization,
  markStaged,
  unlockFinalization,
} from './finalization-lock.ts';

const NOTE = 'run/composefs/staged-deployment';

async function host(note?: string) {
  const root = await mkdtemp(path.join(tmpdir(), 'finalization-lock-'));
  onTestFinished(() => rm(root, { recursive: true }));
  if (note !== undefined) {
    await mkdir(path.join(root, 'run/composefs'), { recursive: true });
    await writeFile(path.join(root, NOTE), note);
  }
  const ran: string[] = [];
  const run = async (command: readonly string[]) => {
    ran.push(`${command.join(' ')}, ${(await isFinalizationLocked({ root })) ? 'locked' : 'unlocked'}`);
    return '';
  };
  return { root, run, ran, signal: deadline(10_000), note: () => readFile(path.join(root, NOTE), 'utf8') };
}

const note = (locked: boolean) => JSON.stringify({ depl_id: 'a', finalization_locked: locked });

test('what is staged, or will be, is locked once systemd has read so', async () => {
  const { root, run, ran, signal } = await host();
  await lockFinalization({ root, run }, signal);
  await lockFinalization({ root, run }, signal);
  const file = 'run/systemd/system/bootc-finalize-staged.service.d/50-shale-hold-back.conf';
  expect(await readFile(path.join(root, file), 'utf8')).toMatch(
    /^\[Service\]\nExecStop=\nExecStop=\/usr\/bin\/true\n$/m,
  );
  expect(ran).toEqual(Array(2).fill('systemctl daemon-reload, locked'));
});

test('and released the same way, with its note', async () => {
  const { root, run, ran, signal, note: read } = await host(note(true));
  await lockFinalization({ root, run }, signal);
  await unlockFinalization({ root, run }, signal);
  await unlockFinalization({ root, run }, signal);
  expect(ran).toEqual(['systemctl daemon-reload, locked', 'systemctl daemon-reload, unlocked']);
  expect(await read()).toBe(note(false));
});

test('bootc’s note says what is locked, and keeps what else it has', async () => {
  const { root, note: read } = await host('{"depl_id":"a","finalization_locked":false,"other":1}');
  await markStaged(root, 'locked');
  expect(JSON.parse(await read())).toEqual({ depl_id: 'a', finalization_locked: true, other: 1 });
});

test('nothing is noted where nothing is staged, and another note is refused', async () => {
  const { root } = await host();
  await markStaged(root, 'locked');
  expect(existsSync(path.join(root, NOTE))).toBe(false);
  const other = await host('{"depl_id":"a"}');
  await expect(markStaged(other.root, 'locked')).rejects.toThrow(
    '/run/composefs/staged-deployment: expected',
  );
});

test('bootc forgets what is staged', async () => {
  const { root } = await host(note(false));
  await forgetStaged(root);
  await forgetStaged(root);
  expect(existsSync(path.join(root, NOTE))).toBe(false);
});
