import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { deadline } from '../../test/fixtures/patience.ts';
import {
  isLocked,
  lockSandbox,
  RETRY_MS,
  SandboxInUse,
  socketName,
  untilUnlocked,
  whileLocked,
} from './lock.ts';

const dir = `/no/such/dir/${process.pid}`;

test('one holder at a time for each directory', async () => {
  expect(await isLocked(dir)).toBe(false);
  const lock = await lockSandbox(dir);
  expect(await isLocked(dir)).toBe(true);
  await expect(lockSandbox(dir)).rejects.toThrow(SandboxInUse);
  const other = await lockSandbox(`${dir}/other`);
  other.release();
  lock.release();
  expect(await isLocked(dir)).toBe(false);
});

test('a place whose holder ends every connection at once is asked for again after a pause each time', async () => {
  let connections = 0;
  const holder = createServer((socket) => {
    connections += 1;
    socket.destroy();
  });
  const held = path.join(dir, 'busy');
  holder.listen(socketName(held));
  await once(holder, 'listening');
  const stop = new AbortController();
  const started = performance.now();
  const free = untilUnlocked(held, stop.signal);
  await delay(500);
  stop.abort();
  await expect(free).rejects.toThrow('aborted');
  const elapsed = performance.now() - started;
  holder.close();
  expect(connections).toBeGreaterThan(0);
  expect(connections).toBeLessThanOrEqual(elapsed / RETRY_MS + 1);
});

test('a holder that is killed releases the place, and a waiter is notified', async () => {
  const lockFile = path.join(import.meta.dirname, 'lock.ts');
  const script = `const { lockSandbox } = await import(${JSON.stringify(lockFile)});
    await lockSandbox(${JSON.stringify(dir)}); process.stdout.write('held'); setInterval(() => {}, 1000);`;
  const holder = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void holder.kill('SIGKILL'));
  await once(holder.stdout, 'data');
  await expect(lockSandbox(dir)).rejects.toThrow(SandboxInUse);

  const free = untilUnlocked(dir, deadline(10_000));
  holder.kill('SIGKILL');
  await free;
  expect(await isLocked(dir)).toBe(false);
});

test('work under one name is done one at a time, whether it succeeds or fails', async () => {
  const order: string[] = [];
  const both = Promise.withResolvers<void>();
  const first = whileLocked(`${dir}/work`, deadline(10_000), async () => {
    order.push('first begins');
    await both.promise;
    order.push('first fails');
    throw new Error('no space left');
  });
  const second = whileLocked(`${dir}/work`, deadline(10_000), async () => order.push('second'));
  await whileLocked(`${dir}/other work`, deadline(10_000), async () => order.push('other'));
  both.resolve();
  await expect(first).rejects.toThrow('no space left');
  await second;
  expect(order).toEqual(['first begins', 'other', 'first fails', 'second']);
});

test('who waits for work under a name stops waiting with its signal', async () => {
  const done = Promise.withResolvers<void>();
  const first = whileLocked(`${dir}/stuck`, deadline(10_000), () => done.promise);
  const stop = new AbortController();
  const second = whileLocked(`${dir}/stuck`, stop.signal, async () => 'never');
  stop.abort(new Error('interrupted'));
  await expect(second).rejects.toThrow();
  done.resolve();
  await first;
});
