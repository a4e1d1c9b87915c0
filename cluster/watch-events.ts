import type { IncomingMessage } from 'node:http';
import { createInterface } from 'node:readline';
import type { Kind, KubernetesObject } from '../api/object.ts';
import type { WatchEvent, WatchOptions } from './api-client.ts';
import { ApiError, type StatusBody } from './api-client.ts';

/** The head of the answer comes at once, however long the watch goes on. */
const ANSWER_DEADLINE_MS = 30_000;
/** How long after its own timeout a server may keep a watch open before the connection counts as dead. */
const GRACE_SECONDS = 15;

/**
 * The events of one watch (Kubernetes API concepts, "Efficient detection of changes").
 *
 * @param open sends the request; the signal ends it.
 * @returns events until the server ends the watch or the caller stops.
 * @throws ApiError for an ERROR event (410 when the version is too old) or a refused request.
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
    const lines = createInterface({ input: response, crlfDelay: Number.POSITIVE_INFINITY });
    // It passes on that the connection broke, even to nobody: once the loop below is left, that would end the process.
    lines.on('error', () => undefined);
    for await (const line of lines) {
      if (line !== '') yield parseEvent<T>(kind, line);
    }
    // readline ends quietly when the stream breaks: a cut connection must not look like a server that said goodbye.
    if (response.errored !== null) throw response.errored;
  } finally {
    clearTimeout(stalled);
    clearTimeout(unanswered);
    end.abort();
  }
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
