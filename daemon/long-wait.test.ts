import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { execa } from 'execa';
import pino from 'pino';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import type { DaemonSet } from '../api/kubernetes.ts';
import type { ApiClient } from '../cluster/api-client.ts';
import { waitForChange } from './long-wait.ts';
import { NodeChannel } from './node-channel.ts';

const MANIFEST = path.join(import.meta.dirname, '../manifests/base/daemon.yaml');

const PROGRAM = `
  import { giveBackMemory } from ${JSON.stringify(path.join(import.meta.dirname, 'long-wait.ts'))};
  let work = Array.from({ length: 500_000 }, (_, index) => ({ index }));
  const atWork = process.memoryUsage().heapUsed;
  work = work.length;
  giveBackMemory();
  process.stdout.write(JSON.stringify({ atWork, after: process.memoryUsage().heapUsed }));
`;

test('what work has left is given back by a daemon with the options of its manifest', async () => {
  const daemonSet = parse(await readFile(MANIFEST, 'utf8')) as DaemonSet;
  const [container] = daemonSet.spec.template.spec.containers;
  const options = container?.env?.find(({ name }) => name === 'NODE_OPTIONS')?.value ?? '';
  const { stdout } = await execa(process.execPath, ['--input-type=module', '--eval', PROGRAM], {
    env: { NODE_OPTIONS: options },
  });
  const { atWork, after } = JSON.parse(stdout) as { atWork: number; after: number };
  expect(after).toBeLessThan(atWork / 2);
});

describe('a wait', () => {
  const MINUTE = 60_000;
  const gc = vi.fn();
  beforeEach(() => {
    vi.useFakeTimers();
    vi.stubGlobal('gc', gc);
  });
  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
    gc.mockReset();
  });

  /** @returns a wait of ten minutes that has begun, and whether it is over. */
  function begin(ms = 10 * MINUTE) {
    const channel = new NodeChannel({
      client: {} as ApiClient,
      nodeName: 'worker-1',
      log: pino({ level: 'silent' }),
    });
    const stop = new AbortController();
    const wait = { channel, stop, isOver: false };
    void waitForChange(channel, channel.changes, ms, stop.signal).then(() => {
      wait.isOver = true;
    });
    return wait;
  }

  test('that a change ends soon holds nothing up with memory', async () => {
    const wait = begin();
    await vi.advanceTimersByTimeAsync(5_000);
    wait.channel.lookAgain();
    await vi.advanceTimersByTimeAsync(0);
    expect(wait.isOver).toBe(true);
    await vi.advanceTimersByTimeAsync(10 * MINUTE);
    expect(gc).not.toHaveBeenCalled();
  });

  test('in which nothing happens gives memory back once, and takes no longer for it', async () => {
    const wait = begin();
    await vi.advanceTimersByTimeAsync(MINUTE);
    expect(gc).toHaveBeenCalledOnce();
    expect(wait.isOver).toBe(false);
    await vi.advanceTimersByTimeAsync(9 * MINUTE);
    expect(wait.isOver).toBe(true);
    expect(gc).toHaveBeenCalledOnce();
  });

  test('ends with a change after memory was given back', async () => {
    const wait = begin();
    await vi.advanceTimersByTimeAsync(MINUTE);
    wait.channel.lookAgain();
    await vi.advanceTimersByTimeAsync(0);
    expect(wait.isOver).toBe(true);
  });

  test('that is short, or is broken off, leaves memory alone', async () => {
    const short = begin(1_000);
    const broken = begin();
    broken.stop.abort();
    await vi.advanceTimersByTimeAsync(1_000);
    expect([short.isOver, broken.isOver]).toEqual([true, true]);
    await vi.advanceTimersByTimeAsync(10 * MINUTE);
    expect(gc).not.toHaveBeenCalled();
  });

  test('does not begin where something changed during the last look', async () => {
    const wait = begin();
    const before = wait.channel.changes;
    wait.channel.lookAgain();
    await waitForChange(wait.channel, before, 10 * MINUTE, wait.stop.signal);
    expect(gc).not.toHaveBeenCalled();
  });
});
