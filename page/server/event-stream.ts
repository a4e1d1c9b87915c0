import type { ServerResponse } from 'node:http';
import type { PageView } from '../model/view.ts';
import type { LiveView } from './live-view.ts';

/** ms between two signs of life; the browser takes a stream without one for broken (app/follow.ts). */
const HEARTBEAT_MS = 10_000;
/** ms that a reader may take nothing at all before it is let go. */
const STUCK_MS = 60_000;

interface StreamParts {
  readonly live: Pick<LiveView, 'current' | 'follow' | 'snapshot' | 'patchFrom'>;
  readonly response: ServerResponse;
  /** @returns whether the reader may go on reading; asked at each sign of life. */
  readonly mayGoOn: () => Promise<boolean>;
}

/**
 * Follows the view with server-sent events (HTML standard, "Server-sent events"): `snapshot` with the whole view, then
 * `patch` with what changed.
 *
 * Nothing queues up for a slow reader: while it takes nothing, nothing is written, and then it gets one patch from what it
 * has to what is.
 */
export function streamView({ live, response, mayGoOn }: StreamParts): void {
  let sent: PageView | undefined;
  let stuckSince: number | undefined;

  function write(text: string): void {
    if (!response.write(text)) stuckSince = performance.now();
  }

  function tell(): void {
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
    else if (!(await mayGoOn())) response.end();
    else if (stuckSince === undefined && !response.writableEnded) write(': alive\n\n');
  }

  response.writeHead(200, {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    // Of proxies that would keep events back until they have a buffer full.
    'x-accel-buffering': 'no',
  });
  response.flushHeaders();
  const unfollow = live.follow(tell);
  const heartbeat = setInterval(() => void beat(), HEARTBEAT_MS);
  response.on('drain', () => {
    stuckSince = undefined;
    tell();
  });
  response.on('close', () => {
    clearInterval(heartbeat);
    unfollow();
  });
  tell();
}

/** JSON has no line feeds of its own, so one data line holds it. */
function event(name: string, json: string): string {
  return `event: ${name}\ndata: ${json}\n\n`;
}
