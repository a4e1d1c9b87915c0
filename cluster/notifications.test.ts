import { Writable } from 'node:stream';
import pino from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { changeOf } from '../api/change-id.ts';
import { aNode, aPool } from '../test/fixtures/objects.ts';
import { type RecordingServer, startRecordingServer } from '../test/fixtures/scripted-server.ts';
import type { EventRecorder } from './events.ts';
import { type NotificationResult, Notifier, type NotifierParts, notifying } from './notifications.ts';

const SOURCE = '/clusters/test';
const POOL = aPool('worker');

let server: RecordingServer;
/** What the receiver answers, in this order; 204 after these. */
let answers: number[];
let results: NotificationResult[];
let lines: string;
let end: AbortController;
let now: number;
let running: Promise<void>;

beforeEach(async () => {
  answers = [];
  results = [];
  lines = '';
  end = new AbortController();
  now = Date.parse('2026-06-01T00:00:00Z');
  running = Promise.resolve();
  server = await startRecordingServer(
    (_request, response) => void response.writeHead(answers.shift() ?? 204).end(),
  );
});
afterEach(async () => {
  end.abort();
  await running;
  await server.stop();
});

function newNotifier(more: Partial<NotifierParts> = {}): Notifier {
  const into = new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines += chunk.toString();
      done();
    },
  });
  return new Notifier({
    url: new URL(`${server.url}/hook/s3cret/?token=s3cret`),
    source: SOURCE,
    typePrefix: 'dev.shale.operator',
    log: pino(into),
    onResult: (result) => void results.push(result),
    retryAfterMs: [0, 0],
    now: () => now,
    ...more,
  });
}

function start(more: Partial<NotifierParts> = {}): Notifier {
  const notifier = newNotifier(more);
  running = notifier.run(end.signal);
  return notifier;
}

const stopped = (message = 'too many nodes failed') =>
  ({ type: 'Warning', object: POOL, reason: 'RolloutStopped', message }) as const;
const sent = () =>
  server.requests.map(({ body }) => (JSON.parse(body) as { data: { message: string } }).data.message);

describe('a recorded event', () => {
  it('is a CloudEvent, and an event as before', async () => {
    const recorded: string[] = [];
    const recorder: EventRecorder = {
      normal: (_object, reason) => void recorded.push(reason),
      warning: (_object, reason) => void recorded.push(reason),
    };
    const events = notifying(recorder, start());
    const change = changeOf('rendered-worker-2');
    events.warning(POOL, 'RolloutStopped', 'too many nodes failed', change);
    events.normal(aNode('a'), 'Cordon', 'Cordoned the node');
    await expect.poll(() => results).toEqual(['sent', 'sent']);
    expect(recorded).toEqual(['RolloutStopped', 'Cordon']);
    expect(server.requests[0]).toMatchObject({
      method: 'POST',
      url: '/hook/s3cret/?token=s3cret',
      contentType: 'application/cloudevents+json; charset=utf-8',
    });
    expect(server.requests.map(({ body }) => JSON.parse(body))).toEqual([
      {
        specversion: '1.0',
        id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        source: SOURCE,
        type: 'dev.shale.operator.RolloutStopped',
        subject: 'MachineConfigPool/worker',
        time: '2026-06-01T00:00:00.000Z',
        datacontenttype: 'application/json',
        data: {
          type: 'Warning',
          reason: 'RolloutStopped',
          message: 'too many nodes failed',
          object: {
            apiVersion: 'machineconfiguration.openshift.io/v1',
            kind: 'MachineConfigPool',
            name: 'worker',
          },
          change,
        },
      },
      expect.objectContaining({ type: 'dev.shale.operator.Cordon', subject: 'Node/a' }),
    ]);
  });

  it('is sent once an hour, however often it is recorded', async () => {
    const notifier = start();
    for (const message of ['a', 'a', 'b']) notifier.notify(stopped(message));
    await expect.poll(sent).toEqual(['a', 'b']);
    now += 3_600_000;
    notifier.notify(stopped('a'));
    await expect.poll(sent).toEqual(['a', 'b', 'a']);
  });
});

describe('a receiver', () => {
  it.each([
    ['that is overloaded for a while', [503, 429], ['sent'], 3],
    ['that stays broken', [500, 500, 500], ['failed'], 3],
    ['that refuses', [400], ['failed'], 1],
    ['that has moved', [302], ['failed'], 1],
  ] as const)('%s', async (_what, given, expected, requests) => {
    answers = [...given];
    start().notify(stopped());
    await expect.poll(() => results).toEqual(expected);
    expect(server.requests).toHaveLength(requests);
    expect(lines).not.toContain('s3cret');
  });

  it('that is away is reported by its host alone, and the next event is sent', async () => {
    const { host } = server;
    await server.stop();
    start().notify(stopped());
    await expect.poll(() => results).toEqual(['failed']);
    expect(lines).toContain(host);
    expect(lines).not.toContain('s3cret');
  });

  it('that keeps us waiting costs 200 events, and nobody waits for it', async () => {
    const notifier = newNotifier();
    for (let index = 0; index < 203; index += 1) notifier.notify(stopped(String(index)));
    expect(results).toEqual(['dropped', 'dropped', 'dropped']);
    expect(lines.match(/notifications are dropped/g)).toHaveLength(1);
    running = notifier.run(end.signal);
    await expect.poll(sent).toHaveLength(200);
    expect(sent().slice(0, 3)).toEqual(['0', '1', '2']);
  });
});

it('ends with the signal, in the middle of what it does', async () => {
  const asked = Promise.withResolvers<void>();
  const silent = await startRecordingServer(() => asked.resolve());
  try {
    start({ url: new URL(silent.url) }).notify(stopped());
    await asked.promise;
    end.abort();
    await running;
    expect(results).toEqual(['failed']);
    expect(lines).toBe('');
  } finally {
    await silent.stop();
  }
});
