import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { expect, test } from 'vitest';
import { startScriptedServer } from '../../test/fixtures/scripted-server.ts';
import { eventReader } from '../app/connection/event-reader.ts';
import { applyPatch, diffViews, type ViewPatch } from '../model/patch.ts';
import { EMPTY_VIEW, type PageView } from '../model/view.ts';
import { streamView } from './event-stream.ts';
import type { LiveView } from './live-view.ts';

/** Far more than the socket buffers of a connection hold. */
const LINES = 200_000;

test('a reader that was slow for a while gets one patch for all changes in between', async () => {
  const bulk = Array.from({ length: LINES }, (_, index) => `line ${index} of a log that is much too long`);
  const source = viewSource({ ...EMPTY_VIEW, logs: { bulk } });
  const server = await startScriptedServer((_, response) =>
    streamView({ live: source.live, response, about: { user: 'ops' }, hasAccess: async () => true }),
  );
  try {
    const request = get(server.url);
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    response.pause();
    for (let round = 1; round <= 50; round += 1)
      source.set({ ...EMPTY_VIEW, logs: { bulk, round: [`${round}`] } });

    const read = eventReader();
    const events: { readonly name: string; readonly data: string }[] = [];
    let view: PageView = EMPTY_VIEW;
    for await (const chunk of response.setEncoding('utf8')) {
      for (const event of read(String(chunk))) {
        events.push(event);
        if (event.name === 'about') expect(JSON.parse(event.data)).toEqual({ user: 'ops' });
        else if (event.name === 'snapshot') view = JSON.parse(event.data) as PageView;
        else view = applyPatch(view, JSON.parse(event.data) as ViewPatch);
      }
      if (view.logs['round']?.[0] === '50') break;
    }
    expect(events.map(({ name }) => name)).toEqual(['about', 'snapshot', 'patch']);
    expect(view.logs['bulk']).toHaveLength(LINES);
  } finally {
    await server.stop();
  }
});

/** A view that a test sets. */
function viewSource(first: PageView) {
  let current = first;
  const followers = new Set<() => void>();
  const live: Pick<LiveView, 'current' | 'follow' | 'snapshot' | 'patchFrom'> = {
    get current() {
      return current;
    },
    follow(onChange) {
      followers.add(onChange);
      return () => void followers.delete(onChange);
    },
    snapshot: () => JSON.stringify(current),
    patchFrom: (earlier) => JSON.stringify(diffViews(earlier, current)),
  };
  return {
    live,
    set(view: PageView) {
      current = view;
      for (const follower of followers) follower();
    },
  };
}
