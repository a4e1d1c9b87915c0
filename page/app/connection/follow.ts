import { errorMessage } from '../../../api/error-message.ts';
import { applyPatch, type ViewPatch } from '../../model/patch.ts';
import type { About, PageView } from '../../model/view.ts';
import { eventReader, type ServerEvent } from './event-reader.ts';

/** The state of the connection between page and server. */
export type PageConnection =
  | { readonly kind: 'connecting' }
  | { readonly kind: 'live' }
  /** The connection broke; the page reconnects. */
  | { readonly kind: 'lost'; readonly why: string }
  /** The server requires a token, or another one. */
  | { readonly kind: 'refused'; readonly why: string };

/** ms without data after which a stream counts as broken; the server sends a heartbeat every 10 s. */
const SILENCE_MS = 30_000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15_000;

export interface Follower {
  readonly token: () => string | undefined;
  readonly onView: (view: PageView) => void;
  readonly onAbout: (about: About) => void;
  readonly onConnection: (connection: PageConnection) => void;
}

/** Follows the server's stream until the signal, or until the server refuses the token. */
export async function follow(
  { token, onView, onAbout, onConnection }: Follower,
  signal: AbortSignal,
): Promise<void> {
  let pause = FIRST_PAUSE_MS;
  onConnection({ kind: 'connecting' });
  while (!signal.aborted) {
    try {
      const refusal = await readStream(token(), signal, {
        onAbout,
        onView: (view) => {
          pause = FIRST_PAUSE_MS;
          onView(view);
          onConnection({ kind: 'live' });
        },
      });
      if (refusal !== undefined) {
        onConnection({ kind: 'refused', why: refusal });
        return;
      }
    } catch (error) {
      if (signal.aborted) return;
      onConnection({ kind: 'lost', why: errorMessage(error) });
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
    pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
  }
}

/** @returns why the server rejects the token; undefined when the stream ended. @throws {Error} when it broke. */
async function readStream(
  token: string | undefined,
  signal: AbortSignal,
  follower: Pick<Follower, 'onView' | 'onAbout'>,
): Promise<string | undefined> {
  const silence = new AbortController();
  const onSilence = () => silence.abort(new Error('the server stopped responding'));
  let timer = setTimeout(onSilence, SILENCE_MS);
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
    const take = viewKeeper(follower);
    for (;;) {
      const { done, value } = await reader.read();
      if (done) throw new Error('the server closed the stream');
      clearTimeout(timer);
      timer = setTimeout(onSilence, SILENCE_MS);
      for (const event of events(value)) take(event);
    }
  } finally {
    clearTimeout(timer);
  }
}

/** @returns a function that takes the events of one stream in order. */
function viewKeeper({ onView, onAbout }: Pick<Follower, 'onView' | 'onAbout'>): (event: ServerEvent) => void {
  let view: PageView | undefined;
  return ({ name, data }) => {
    if (name === 'about') {
      onAbout(JSON.parse(data) as About);
      return;
    }
    if (name === 'snapshot') view = JSON.parse(data) as PageView;
    else if (view !== undefined) view = applyPatch(view, JSON.parse(data) as ViewPatch);
    if (view !== undefined) onView(view);
  };
}
