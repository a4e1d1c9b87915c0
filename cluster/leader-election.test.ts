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
/** Of a leader that hears nothing: short, where nothing else has to happen in time. */
const hasty = { ...leaderElectionTimes, renewDeadlineMs: 200, retryMs: 10 };
const patient = { ...leaderElectionTimes, retryMs: 10 };

/** A server that holds one Lease, and stops responding on request. */
async function setUp() {
  const state = { lease: undefined as Lease | undefined, version: 0, silent: false, reads: 0, writes: 0 };
  const server = await startRecordingServer(({ method }, response, body) => {
    if (state.silent) return;
    const known = state.lease?.metadata.resourceVersion;
    const answer = (code: number, object: unknown) =>
      response.writeHead(code).end(JSON.stringify(object ?? { kind: 'Status' }));
    if (method === 'GET') state.reads += 1;
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
    return answer(200, state.lease);
  });
  const agent = new Agent({ keepAlive: true });
  const client = createApiClient({ baseUrl: new URL(server.url), agent, authorize: async () => ({}) });
  onTestFinished(async () => {
    agent.destroy();
    await server.stop();
  });
  const stop = new AbortController();
  const leading = Promise.withResolvers<AbortSignal>();
  const start = (times: typeof leaderElectionTimes) =>
    leadWhenElected({
      client,
      lease: request,
      log: pino({ level: 'silent' }),
      signal: stop.signal,
      times,
      lead: (signal) => {
        leading.resolve(signal);
        return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
      },
    });
  return { state, stop, start, leading: leading.promise };
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
  'a leader that hears nothing of its lease stops its work before another may take over',
  async () => {
    const { state, start, leading } = await setUp();
    const over = start(hasty);
    const signal = await leading;
    state.silent = true;
    await expect(over).rejects.toThrow(LeadershipLost);
    expect(signal.reason).toBeInstanceOf(LeadershipLost);
    // It is no longer its own to delete.
    expect(state.lease?.spec?.holderIdentity).toBe('us');
  },
  SECONDS,
);

test(
  'one whose lease is held by another stops at once',
  async () => {
    const { state, start, leading } = await setUp();
    const over = start({ ...patient, renewDeadlineMs: SECONDS });
    await leading;
    const renewTime = new Date().toISOString();
    state.version += 1;
    state.lease = {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: request.name, namespace: request.namespace, resourceVersion: String(state.version) },
      spec: { holderIdentity: 'them', leaseDurationSeconds: 60, renewTime },
    };
    await expect(over).rejects.toThrow(LeadershipLost);
    expect(state.lease?.spec?.holderIdentity).toBe('them');
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
