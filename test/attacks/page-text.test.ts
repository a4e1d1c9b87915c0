import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { eventReader } from '../../page/app/connection/event-reader.ts';
import type { PageView } from '../../page/model/view.ts';
import { streamView } from '../../page/server/event-stream.ts';
import { LiveView } from '../../page/server/live-view.ts';
import { startScriptedServer } from '../fixtures/scripted-server.ts';
import { aFleet } from '../page/fleet.ts';
import { memoryCaches } from '../page/memory-caches.ts';

/** A daemon's token writes any text into its node's status, and the page shows it. */

const NOW = Date.parse('2026-11-01T12:00:00Z');

test.each([
  ['a line separator', 'a\u2028b\u2029c', String.raw`a\u2028b\u2029c`],
  ['other ends of lines', 'a\rb\vc\fd\u0085e', String.raw`a\rb\u000bc\fd\u0085e`],
  ['an event', 'a\r\n\r\nevent: snapshot\r\ndata: {}\r\n\r\n', String.raw`a\r`],
  ['text that runs backwards', 'degraded \u202edetadpU', String.raw`degraded \u202edetadpU`],
])('%s in a status is shown, and the reader gets every view', async (_, message, shown) => {
  const fleet = aFleet({ worker: 3 }, NOW);
  const [node] = fleet.machineConfigNodes;
  if (node === undefined) throw new Error('the fleet has no node');
  const caches = memoryCaches(fleet);
  caches.machineConfigNodes.put({
    ...node,
    status: {
      ...node.status,
      conditions: [
        {
          type: 'NodeDegraded',
          status: 'True',
          reason: 'Failed',
          message,
          lastTransitionTime: '2026-11-01T00:00:00Z',
        },
      ],
    },
  });
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const live = new LiveView({
    caches,
    inMaintenance: async () => new Set(),
    log: pino({ level: 'silent' }),
    now: () => NOW,
  });
  void live.run(stop.signal);
  const server = await startScriptedServer((__, response) =>
    streamView({ live, response, about: { cluster: message }, hasAccess: async () => true }),
  );
  onTestFinished(() => server.stop());
  const [response] = (await once(get(server.url), 'response')) as [IncomingMessage];
  const read = eventReader();
  const events: { readonly name: string; readonly data: string }[] = [];
  for await (const chunk of response.setEncoding('utf8')) {
    events.push(...read(String(chunk)));
    if (events.length >= 2) break;
  }
  expect(events.map(({ name }) => name)).toEqual(['about', 'snapshot']);
  const [about, snapshot] = events.map(({ data }) => data);
  const view = JSON.parse(snapshot ?? '') as PageView;
  expect(JSON.parse(about ?? '')).toEqual({ cluster: expect.stringContaining(shown) });
  expect(JSON.stringify(view.nodes[node.metadata.name])).toContain(JSON.stringify(shown).slice(1, -1));
});
