import type { IncomingMessage } from 'node:http';
import type { Kind, KubernetesObject } from '../api/object.ts';
import type { WatchEvent, WatchOptions } from './api-client.ts';
import { ApiError, type StatusBody, WatchEventTooLarge } from './api-client.ts';

/** The head of the answer comes at once, however long the watch goes on. */
const ANSWER_DEADLINE_MS = 30_000;
/** How long after its own timeout a server may keep a watch open before the connection counts as dead. */
const GRACE_SECONDS = 15;
/**
 * Of one event: the API server stores objects of at most 1.5 MiB (etcd's --max-request-bytes), whatever the JSON adds.
 */
const MAX_EVENT_BYTES = 16 * 1024 * 1024;
const LINE_FEED = 0x0a;

/**
 * The events of one watch (Kubernetes API concepts, "Efficient detection of changes").
 *
 * @param open sends the request; the signal ends it.
 * @returns events until the server ends the watch or the caller stops.
 * @throws ApiError for an ERROR event (410 when the version is too old) or a refused request.
 * @throws WatchEventTooLarge for an event of more than 16 MiB.
 */
export async function* watchEvents<T extends KubernetesObject>(
  kind: Kind<T>,
  options: WatchOptions & { readonly timeoutSeconds: number },
  open: (signal: AbortSignal) => Promise<IncomingMessage>,
): AsyncGenerator<WatchEvent<T>> {
  const end = new AbortController();
  const signal = options.signal === undefined ? end.signal : AbortSignal.any([options.signal, end.signal]);
  const seconds = options.timeoutSeconds + GRACE_SECONDS;
  const stalled = setTimeout(
    () => end.abort(new Error(`watch ${kind.plural}: the server did not end it within ${seconds} s`)),
    seconds * 1000,
  );
  const unanswered = setTimeout(
    () => end.abort(new Error(`watch ${kind.plural}: no response within ${ANSWER_DEADLINE_MS / 1000} s`)),
    ANSWER_DEADLINE_MS,
  );
  try {
    const response = await open(signal);
    clearTimeout(unanswered);
    for await (const line of linesOf(response, kind.plural)) yield parseEvent<T>(kind, line);
  } finally {
    clearTimeout(stalled);
    clearTimeout(unanswered);
    end.abort();
  }
}

/**
 * Lines end with a line feed and nothing else: JSON may have U+2028 and U+2029 in a string as they are, where readline
 * would split it. A line that the end of the response cuts off is parsed too, and fails as JSON.
 *
 * @throws WatchEventTooLarge before more than that is held in memory.
 */
async function* linesOf(response: IncomingMessage, plural: string): AsyncGenerator<string> {
  let parts: Buffer[] = [];
  let length = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
      const line = Buffer.concat([...parts, chunk.subarray(start, end)]).toString('utf8');
      start = end + 1;
      parts = [];
      length = 0;
      if (line !== '') yield line;
    }
    const rest = chunk.subarray(start);
    length += rest.length;
    if (length > MAX_EVENT_BYTES) throw new WatchEventTooLarge(plural, MAX_EVENT_BYTES);
    if (rest.length > 0) parts.push(rest);
  }
  if (parts.length > 0) yield Buffer.concat(parts).toString('utf8');
}

function parseEvent<T extends KubernetesObject>(kind: Kind<T>, line: string): WatchEvent<T> {
  const event = JSON.parse(line) as { type: string; object: KubernetesObject & StatusBody };
  switch (event.type) {
    case 'ADDED':
    case 'MODIFIED':
    case 'DELETED':
      return { type: event.type, object: event.object as unknown as T };
    case 'BOOKMARK':
      return { type: 'BOOKMARK', resourceVersion: event.object.metadata.resourceVersion ?? '' };
    case 'ERROR':
      throw new ApiError(event.object.code ?? 500, `watch ${kind.plural}`, event.object);
    default:
      throw new Error(`watch ${kind.plural}: unknown event type ${JSON.stringify(event.type)}`);
  }
}
