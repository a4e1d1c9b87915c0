import { applyPatch, type ViewPatch } from '../../model/patch.ts';
import type { PageView } from '../../model/view.ts';

/** How the page stands with its server. */
export type Connection =
  | { readonly kind: 'connecting' }
  | { readonly kind: 'live' }
  /** Broken off; it is tried again. */
  | { readonly kind: 'lost'; readonly why: string }
  /** The server wants a token, or another one. */
  | { readonly kind: 'refused'; readonly why: string };

/** ms without a sign of life after which a stream is taken for broken: the server gives one every 10 s. */
const SILENCE_MS = 30_000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15_000;

export interface Follower {
  readonly token: () => string | undefined;
  readonly onView: (view: PageView) => void;
  readonly onConnection: (connection: Connection) => void;
}

/** Follows the server's stream until the signal, or until the server refuses the token. */
export async function follow({ token, onView, onConnection }: Follower, signal: AbortSignal): Promise<void> {
  let pause = FIRST_PAUSE_MS;
  onConnection({ kind: 'connecting' });
  while (!signal.aborted) {
    try {
      const refusal = await readStream(token(), signal, (view) => {
        pause = FIRST_PAUSE_MS;
        onView(view);
        onConnection({ kind: 'live' });
      });
      if (refusal !== undefined) {
        onConnection({ kind: 'refused', why: refusal });
        return;
      }
    } catch (error) {
      if (signal.aborted) return;
      onConnection({ kind: 'lost', why: error instanceof Error ? error.message : String(error) });
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
    pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
  }
}

/** @returns why the server refuses the token; undefined when the stream ended. @throws Error when it broke. */
async function readStream(
  token: string | undefined,
  signal: AbortSignal,
  onView: (view: PageView) => void,
): Promise<string | undefined> {
  const silence = new AbortController();
  const hush = () => silence.abort(new Error('the server stopped responding'));
  let timer = setTimeout(hush, SILENCE_MS);
  try {
    const response = await fetch('./events', {
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
      cache: 'no-store',
      signal: AbortSignal.any([signal, silence.signal]),
    });
    if (response.status === 401 || response.status === 403) return (await response.text()).trim();
    if (!response.ok || response.body === null) throw new Error(`HTTP ${response.status}`);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const events = eventReader();
    let view: PageView | undefined;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) throw new Error('the server closed the stream');
      clearTimeout(timer);
      timer = setTimeout(hush, SILENCE_MS);
      for (const { name, data } of events(value)) {
        if (name === 'snapshot') view = JSON.parse(data) as PageView;
        else if (view !== undefined) view = applyPatch(view, JSON.parse(data) as ViewPatch);
        if (view !== undefined) onView(view);
      }
    }
  } finally {
    clearTimeout(timer);
  }
}

/** One event of a server-sent stream. */
interface ServerEvent {
  readonly name: string;
  readonly data: string;
}

/**
 * Reads a stream of server-sent events (HTML standard, "Interpreting an event stream"), as far as Shale's own server
 * writes them. The browser's EventSource is not used because it can't send a token.
 *
 * @returns what takes the next piece of text and gives the events that are complete with it.
 */
export function eventReader(): (text: string) => readonly ServerEvent[] {
  let rest = '';
  return (text) => {
    const blocks = `${rest}${text}`.split('\n\n');
    rest = blocks.pop() ?? '';
    return blocks.flatMap((block) => {
      const found = /^event: (.*)\ndata: (.*)$/.exec(block);
      return found === null ? [] : [{ name: found[1] ?? '', data: found[2] ?? '' }];
    });
  };
}
