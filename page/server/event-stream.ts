import type { ServerResponse } from 'node:http';
import type { About, PageView } from '../model/view.ts';
import type { LiveView } from './live-view.ts';
import { pageJson } from './page-json.ts';

/** ms between two heartbeats; without them the browser considers the stream broken (app/connection/follow.ts). */
const HEARTBEAT_MS = 10_000;
/** ms after which a reader that reads nothing is disconnected. */
const STUCK_MS = 60_000;

interface StreamParts {
  readonly live: Pick<LiveView, 'current' | 'follow' | 'snapshot' | 'patchFrom'>;
  readonly response: ServerResponse;
  readonly about: About;
  /** @returns whether the reader still has access; checked at each heartbeat. */
  readonly hasAccess: () => Promise<boolean>;
}

/**
 * Follows the view with server-sent events (HTML standard, "Server-sent events"): `about` with whose view it is,
 * `snapshot` with the whole view, then `patch` with what changed.
 *
 * Nothing is queued for a slow reader: nothing is written until it reads again, and then it gets one patch from its
 * view to the current one.
 */
export function streamView({ live, response, about, hasAccess }: StreamParts): void {
  let sent: PageView | undefined;
  let stuckSince: number | undefined;

  function write(text: string): void {
    if (!response.write(text)) stuckSince = performance.now();
  }

  function sendChanges(): void {
    const view = live.current;
    if (view === undefined || view === sent || stuckSince !== undefined) return;
    if (sent === undefined) write(event('snapshot', live.snapshot()));
    else {
      const patch = live.patchFrom(sent);
      if (patch !== undefined) write(event('patch', patch));
    }
    sent = view;
  }

  async function beat(): Promise<void> {
    if (stuckSince !== undefined && performance.now() - stuckSince > STUCK_MS) response.destroy();
    else if (!(await hasAccess())) response.end();
    else if (stuckSince === undefined && !response.writableEnded) write(': alive\n\n');
  }

  response.writeHead(200, {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    // Prevents proxies from buffering events.
    'x-accel-buffering': 'no',
  });
  response.flushHeaders();
  write(event('about', pageJson(about)));
  const unfollow = live.follow(sendChanges);
  const heartbeat = setInterval(() => void beat(), HEARTBEAT_MS);
  response.on('drain', () => {
    stuckSince = undefined;
    sendChanges();
  });
  response.on('close', () => {
    clearInterval(heartbeat);
    unfollow();
  });
  sendChanges();
}

/** JSON contains no line feeds, so that it fits in one data line. */
function event(name: string, json: string): string {
  return `event: ${name}\ndata: ${json}\n\n`;
}
