/** An API server that is away for an hour: what a whole daemon does meanwhile and afterwards. */
import { afterEach, describe, expect, test, vi } from 'vitest';
import { MachineConfigNodes } from '../api/machine-config-node.ts';
import { type ApiClient, ApiUnreachable } from '../cluster/api-client.ts';
import { isAt, policies, render, standardSpec } from '../test/fixtures/node-configs.ts';
import { patience } from '../test/fixtures/patience.ts';
import { NODE, startDaemon } from '../test/fixtures/running-daemon.ts';
import { createTestNode, noDirectoryNodes } from '../test/fixtures/test-node.ts';

// The daemon's waits are the test's, so that an hour passes in a moment.
vi.mock('node:timers/promises', () => ({
  setTimeout: (ms: number, value: unknown, { signal }: { signal?: AbortSignal } = {}) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason);
        return;
      }
      const timer = setTimeout(() => {
        signal?.removeEventListener('abort', abort);
        resolve(value);
      }, ms);
      const abort = () => {
        clearTimeout(timer);
        reject(signal?.reason);
      };
      signal?.addEventListener('abort', abort, { once: true });
    }),
}));

const realTimeout = globalThis.setTimeout;
const HOUR_MS = 3_600_000;
/** A loop whose wait is over has done its work within this real time, or has ended. */
const AT_WORK_MS = 2_000;
/**
 * What one daemon may ask of an API server that does not answer: a few thousand nodes still leave it room to come back.
 */
const MOST_REQUESTS = 240;

/** A client whose server can go away: every request is counted, and refused while it is away. */
function awayClient(client: ApiClient) {
  const state = { isAway: false, requests: [] as number[] };
  const count = () => state.requests.push(Date.now());
  const refuse = () => {
    count();
    return new ApiUnreachable('asked', new Error('connect ECONNREFUSED'));
  };
  const refused = new Proxy(client, {
    get: (target, name: keyof ApiClient) => {
      if (!state.isAway) {
        count();
        return target[name]?.bind(target);
      }
      if (name !== 'watch') return () => Promise.reject(refuse());
      return () => ({ [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(refuse()) }) });
    },
  });
  return { state, refused };
}

/** The loop of the steps, and that of the pinned images. */
const LOOPS = 2;

/**
 * Files and sockets take real time: the virtual time stands until whoever it woke waits again, or it would pass to what
 * a loop at rest waits for.
 */
async function untilWaiting(count: number): Promise<void> {
  const deadline = performance.now() + AT_WORK_MS;
  while (vi.getTimerCount() < count && performance.now() < deadline) {
    await new Promise((resolve) => realTimeout(resolve, 1));
  }
}

describe.skipIf(noDirectoryNodes !== undefined)('an API server that is away for an hour', () => {
  afterEach(() => void vi.useRealTimers());

  test('is asked seldom, at no fixed beat, and the node goes on by itself when it is back', {
    timeout: patience(120_000),
  }, async () => {
    await using node = await createTestNode();
    let away: ReturnType<typeof awayClient> | undefined;
    await using daemon = await startDaemon(node, {
      clientOf: async ({ client }) => {
        away = awayClient(client);
        return away.refused;
      },
      backoff: { firstMs: 1_000, longestMs: 120_000 },
    });
    if (away === undefined) throw new Error('the daemon has no client');
    const { state } = away;
    const standard = standardSpec(await policies(daemon));
    await render(daemon, 'rendered-1', 'one\n');
    await daemon.want(standard('rendered-1', 'Disrupt'));
    await daemon.until('the first config', isAt('rendered-1'));
    await render(daemon, 'rendered-2', 'two\n');

    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
    state.isAway = true;
    state.requests.length = 0;
    // It is told of another target, and can't ask for it.
    await daemon.want(standard('rendered-2', 'Live'));
    await vi.waitUntil(() => state.requests.length > 0, { timeout: patience(60_000), interval: 10 });
    await vi.waitUntil(() => vi.getTimerCount() >= LOOPS, { timeout: patience(60_000), interval: 10 });
    for (const end = Date.now() + HOUR_MS; Date.now() < end; ) {
      await vi.advanceTimersToNextTimerAsync();
      await untilWaiting(LOOPS);
    }
    process.stderr.write(`asked ${state.requests.length} times in an hour\n`);
    expect(state.requests.length).toBeGreaterThan(10);
    expect(state.requests.length).toBeLessThan(MOST_REQUESTS);
    const gaps = state.requests.map((at, index) => at - (state.requests[index - 1] ?? at)).slice(-20);
    expect(new Set(gaps).size, 'different waits').toBeGreaterThan(3);

    state.isAway = false;
    state.requests.length = 0;
    const back = Date.now();
    const isThere = isAt('rendered-2');
    while (!isThere(await daemon.client.get(MachineConfigNodes, NODE))) {
      // What is really sent and written takes its own time.
      for (let tick = 0; tick < 10; tick += 1) {
        await vi.advanceTimersByTimeAsync(100);
        await new Promise((resolve) => realTimeout(resolve, 5));
      }
    }
    // The longest wait between two tries, with what is added at random. When it is done says nothing: a slow machine
    // works while virtual time passes.
    expect((state.requests[0] ?? Number.POSITIVE_INFINITY) - back, 'ms until it asks again').toBeLessThan(
      160_000,
    );
    vi.useRealTimers();
  });
});
