import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { deadline } from '../../../test/fixtures/patience.ts';
import { forgetStaged, holdBack, isHeldBack, markStaged, release } from './hold-back.ts';

const NOTE = 'run/composefs/staged-deployment';

async function host(note?: string) {
  const root = await mkdtemp(path.join(tmpdir(), 'hold-back-'));
  onTestFinished(() => rm(root, { recursive: true }));
  if (note !== undefined) {
    await mkdir(path.join(root, 'run/composefs'), { recursive: true });
    await writeFile(path.join(root, NOTE), note);
  }
  const ran: string[] = [];
  const run = async (command: readonly string[]) => {
    ran.push(`${command.join(' ')}, ${(await isHeldBack({ root })) ? 'held back' : 'released'}`);
    return '';
  };
  return { root, run, ran, signal: deadline(10_000), note: () => readFile(path.join(root, NOTE), 'utf8') };
}

const note = (locked: boolean) => JSON.stringify({ depl_id: 'a', finalization_locked: locked });

test('what is staged, or will be, is held back once systemd has read so', async () => {
  const { root, run, ran, signal } = await host();
  await holdBack({ root, run }, signal);
  await holdBack({ root, run }, signal);
  const file = 'run/systemd/system/bootc-finalize-staged.service.d/50-shale-hold-back.conf';
  expect(await readFile(path.join(root, file), 'utf8')).toMatch(
    /^\[Service\]\nExecStop=\nExecStop=\/usr\/bin\/true\n$/m,
  );
  expect(ran).toEqual(Array(2).fill('systemctl daemon-reload, held back'));
});

test('and released the same way, with its note', async () => {
  const { root, run, ran, signal, note: read } = await host(note(true));
  await holdBack({ root, run }, signal);
  await release({ root, run }, signal);
  await release({ root, run }, signal);
  expect(ran).toEqual(['systemctl daemon-reload, held back', 'systemctl daemon-reload, released']);
  expect(await read()).toBe(note(false));
});

test('bootc’s note says what is held back, and keeps what else it has', async () => {
  const { root, note: read } = await host('{"depl_id":"a","finalization_locked":false,"other":1}');
  await markStaged(root, 'heldBack');
  expect(JSON.parse(await read())).toEqual({ depl_id: 'a', finalization_locked: true, other: 1 });
});

test('nothing is noted where nothing is staged, and another note is refused', async () => {
  const { root } = await host();
  await markStaged(root, 'heldBack');
  expect(existsSync(path.join(root, NOTE))).toBe(false);
  const other = await host('{"depl_id":"a"}');
  await expect(markStaged(other.root, 'heldBack')).rejects.toThrow(
    '/run/composefs/staged-deployment: expected',
  );
});

test('bootc forgets what is staged', async () => {
  const { root } = await host(note(false));
  await forgetStaged(root);
  await forgetStaged(root);
  expect(existsSync(path.join(root, NOTE))).toBe(false);
});
