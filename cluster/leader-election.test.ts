import { Agent } from 'node:http';
import pino from 'pino';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { Lease } from '../api/kubernetes.ts';
import { patience } from '../test/fixtures/patience.ts';
import { startRecordingServer } from '../test/fixtures/scripted-server.ts';
import { createApiClient } from './http-api-client.ts';
import { LeadershipLost, leaderElectionTimes, leadWhenElected } from './leader-election.ts';

const request = { namespace: 'default', name: 'shale-operator', holder: 'us' };
const SECONDS = 60_000;
/** Renewed often, and not lost because this machine is slow. */
const patient = { ...leaderElectionTimes, renewDeadlineMs: patience(SECONDS), retryMs: 10 };
/** A leader's deadline once it hears nothing: short, because nothing has to happen in time then. */
const SILENT_DEADLINE_MS = 200;

/** A server that holds one Lease, and stops responding on request. */
async function setUp() {
  const state = {
    lease: undefined as Lease | undefined,
    version: 0,
    silent: false,
    /** Silent from the answer to the next write on, so that no request has the deadline of before. */
    silentAfterWrite: false,
    down: false,
    reads: 0,
    writes: 0,
  };
  const server = await startRecordingServer(({ method }, response, body) => {
    if (state.silent) return;
    const known = state.lease?.metadata.resourceVersion;
    const answer = (code: number, object: unknown) =>
      response.writeHead(code).end(JSON.stringify(object ?? { kind: 'Status' }));
    if (method === 'GET') state.reads += 1;
    if (state.down) return answer(503, undefined);
    if (method === 'GET') return answer(state.lease === undefined ? 404 : 200, state.lease);
    if (method === 'DELETE') {
      state.lease = undefined;
      return answer(200, undefined);
    }
    const given = JSON.parse(body) as Lease;
    if (method === 'PUT' && given.metadata.resourceVersion !== known) return answer(409, undefined);
    state.version += 1;
    state.writes += 1;
    state.lease = { ...given, metadata: { ...given.metadata, resourceVersion: String(state.version) } };
    answer(200, state.lease);
    state.silent = state.silentAfterWrite;
    return undefined;
  });
  const agent = new Agent({ keepAlive: true });
  const client = createApiClient({ baseUrl: new URL(server.url), agent, authorize: async () => ({}) });
  onTestFinished(async () => {
    agent.destroy();
    await server.stop();
  });
  /** The deadline is short only while the server is silent: the test depends on the silence, not on the machine. */
  const hasty = {
    ...patient,
    get renewDeadlineMs() {
      return state.silent ? SILENT_DEADLINE_MS : patient.renewDeadlineMs;
    },
  };
  const beSilent = (silent: boolean) => {
    state.silentAfterWrite = silent;
    if (!silent) state.silent = false;
  };
  const stop = new AbortController();
  /** The signal of each term. */
  const terms: AbortSignal[] = [];
  const leading = Promise.withResolvers<AbortSignal>();
  const untilAborted = (signal: AbortSignal) =>
    new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
  /** Messages of the log at level info and above, in order. */
  const logged: string[] = [];
  const write = (line: string) => void logged.push((JSON.parse(line) as { readonly msg: string }).msg);
  const start = (times: typeof leaderElectionTimes, work = untilAborted) =>
    leadWhenElected({
      client,
      lease: request,
      log: pino({ level: 'info' }, { write }),
      signal: stop.signal,
      times,
      lead: (signal) => {
        terms.push(signal);
        leading.resolve(signal);
        return work(signal);
      },
    });
  const termsBegun = (count: number) =>
    vi.waitUntil(() => terms.length === count, { timeout: patience(SECONDS) });
  return {
    state,
    hasty,
    beSilent,
    stop,
    start,
    logged,
    terms,
    termsBegun,
    untilAborted,
    leading: leading.promise,
  };
}

test(
  'it renews while it leads and gives the lease back when it is stopped',
  async () => {
    const { state, stop, start, leading } = await setUp();
    const over = start(patient);
    await leading;
    await vi.waitUntil(() => state.writes > 2, { timeout: patience(SECONDS) });
    expect(state.lease?.spec?.holderIdentity).toBe('us');
    stop.abort();
    await over;
    expect(state.lease).toBeUndefined();
  },
  SECONDS,
);

test(
  'a leader that hears nothing of its lease stops its work before another may take over, and leads again once it hears',
  async () => {
    const { state, hasty, beSilent, stop, start, leading, terms, termsBegun } = await setUp();
    const over = start(hasty);
    const signal = await leading;
    beSilent(true);
    await vi.waitUntil(() => signal.aborted, { timeout: patience(SECONDS) });
    expect(signal.reason).toBeInstanceOf(LeadershipLost);
    // It is no longer its own to delete.
    expect(state.lease?.spec?.holderIdentity).toBe('us');
    expect(terms).toHaveLength(1);
    beSilent(false);
    await termsBegun(2);
    expect(terms[1]?.aborted).toBe(false);
    stop.abort();
    await over;
    expect(state.lease).toBeUndefined();
  },
  SECONDS,
);

test(
  'one whose lease is held by another stops at once, and leads again when that one gives it back',
  async () => {
    const { state, stop, start, leading, terms, termsBegun } = await setUp();
    const over = start(patient);
    const signal = await leading;
    const renewTime = new Date().toISOString();
    state.version += 1;
    state.lease = {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: request.name, namespace: request.namespace, resourceVersion: String(state.version) },
      spec: { holderIdentity: 'them', leaseDurationSeconds: 60, renewTime },
    };
    await vi.waitUntil(() => signal.aborted, { timeout: patience(SECONDS) });
    const { reads } = state;
    await vi.waitUntil(() => state.reads > reads + 3, { timeout: patience(SECONDS) });
    expect([state.lease.spec?.holderIdentity, terms.length]).toEqual(['them', 1]);
    state.lease = undefined;
    await termsBegun(2);
    stop.abort();
    await over;
  },
  SECONDS,
);

test(
  'what breaks off when the lease is lost is no error; the next term is led like the first',
  async () => {
    const { hasty, beSilent, stop, start, leading, terms, termsBegun, untilAborted } = await setUp();
    const over = start(hasty, async (signal) => {
      await untilAborted(signal);
      if (terms.length === 1) throw new Error('nobody answers');
    });
    await leading;
    beSilent(true);
    await vi.waitUntil(() => terms[0]?.aborted, { timeout: patience(SECONDS) });
    beSilent(false);
    await termsBegun(2);
    stop.abort();
    await over;
  },
  SECONDS,
);

test(
  'an error of a leader that holds its lease is thrown, and the lease is given back',
  async () => {
    const { state, start } = await setUp();
    await expect(start(patient, () => Promise.reject(new Error('a bug')))).rejects.toThrow('a bug');
    expect(state.lease).toBeUndefined();
  },
  SECONDS,
);

test(
  'a leader whose work does not end when the lease is lost must not go on',
  async () => {
    const { hasty, beSilent, start, leading } = await setUp();
    const ended = Promise.withResolvers<void>();
    const over = start(Object.assign(hasty, { endMs: 20 }), () => ended.promise);
    await leading;
    beSilent(true);
    await expect(over).rejects.toThrow(
      new LeadershipLost(request.name, 'its work did not end within 0.02 s'),
    );
    ended.resolve();
  },
  SECONDS,
);

test(
  'a candidate takes over from one that it has not seen renew for as long as the lease lasts, whatever the clocks say',
  async () => {
    const { state, stop, start, leading } = await setUp();
    const renew = () => {
      state.version += 1;
      state.lease = {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: {
          name: request.name,
          namespace: request.namespace,
          resourceVersion: String(state.version),
        },
        spec: {
          holderIdentity: 'them',
          leaseDurationSeconds: 3,
          renewTime: new Date(state.version).toISOString(),
        },
      };
    };
    renew();
    const over = start(patient);
    for (let renewal = 0; renewal < 3; renewal += 1) {
      const { reads } = state;
      await vi.waitUntil(() => state.reads > reads + 3, { timeout: patience(SECONDS) });
      expect(state.writes).toBe(0);
      renew();
    }
    await leading;
    stop.abort();
    await over;
  },
  SECONDS,
);

test(
  'a candidate waits while another leads, and ends when it is stopped',
  async () => {
    const { state, stop, start } = await setUp();
    state.lease = {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: request.name, namespace: request.namespace, resourceVersion: '1' },
      spec: { holderIdentity: 'them', leaseDurationSeconds: 60, renewTime: new Date().toISOString() },
    };
    const over = start(patient);
    stop.abort();
    await over;
    expect(state.writes).toBe(0);
  },
  SECONDS,
);

test(
  'an outage of the API server is logged when it begins and when it is over, not at every attempt',
  async () => {
    const { state, stop, start, logged, leading } = await setUp();
    state.down = true;
    const over = start(patient);
    await vi.waitUntil(() => state.reads > 20, { timeout: patience(SECONDS) });
    expect(logged).toEqual(['lease could not be read or written; retrying']);
    state.down = false;
    await leading;
    expect(logged.slice(1)).toEqual(['lease can be read and written again', 'leading']);
    stop.abort();
    await over;
  },
  SECONDS,
);
