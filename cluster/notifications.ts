import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { ChangeId } from '../api/change-id.ts';
import { errorMessage } from '../api/error-message.ts';
import type { KubernetesObject } from '../api/object.ts';
import { type Connection, outsideAgentFor } from './connection.ts';
import type { EventRecorder } from './events.ts';
import { send } from './http-request.ts';

/** What became of a notification. */
export type NotificationResult = 'sent' | 'failed' | 'dropped';

export interface NotifierParts {
  /** Where CloudEvents are sent. It may contain a token, so no log line and no error has it. */
  readonly url: URL;
  /** The CloudEvents attribute `source`: a URI reference that identifies this cluster. */
  readonly source: string;
  /** The start of the attribute `type`, such as `dev.shale.operator`. */
  readonly typePrefix: string;
  readonly log: Logger;
  readonly onResult: (result: NotificationResult) => void;
  /** ms between the attempts to send a notification; there is one more attempt than there are numbers. */
  readonly retryAfterMs?: readonly number[];
  /** ms since the epoch. */
  readonly now: () => number;
}

/** An event as it was recorded (docs/decisions/0019-notifications-are-events.md). */
export interface Notification {
  readonly type: 'Normal' | 'Warning';
  readonly object: KubernetesObject;
  readonly reason: string;
  readonly message: string;
  readonly change?: ChangeId | undefined;
}

/** Limit of queued notifications; more are dropped, so that a receiver that is unavailable costs no memory. */
const LONGEST_QUEUE = 200;
/** ms; controllers record an event again as long as its cause lasts. */
const SAME_AGAIN_AFTER = 3_600_000;
/** Events whose repetitions are recognised. */
const REMEMBERED = 1_000;
/** ms for one attempt. */
const DEADLINE = 10_000;
const RETRY_AFTER_MS = [1_000, 5_000];

/**
 * Sends events as CloudEvents 1.0 over HTTP, in structured mode (CloudEvents, "HTTP Protocol Binding", 3.2): one at a
 * time, in the order in which they were recorded. Nothing waits for it, and nothing fails because of it.
 */
export class Notifier {
  readonly #parts: NotifierParts;
  readonly #queue: object[] = [];
  readonly #sentAt = new Map<string, number>();
  #wake: () => void = () => undefined;
  #drops = false;

  constructor(parts: NotifierParts) {
    this.#parts = parts;
  }

  /** @returns at once. */
  notify(notification: Notification): void {
    const { log, onResult, now } = this.#parts;
    if (this.#isRepetition(notification, now())) return;
    if (this.#queue.length >= LONGEST_QUEUE) {
      if (!this.#drops) log.warn({ waiting: LONGEST_QUEUE }, 'notifications are dropped: too many wait');
      this.#drops = true;
      onResult('dropped');
      return;
    }
    this.#queue.push(cloudEvent(notification, this.#parts));
    this.#wake();
  }

  /** Sends until the signal. @returns when nothing is under way; what waits then is lost. */
  async run(signal: AbortSignal): Promise<void> {
    const agent = outsideAgentFor(this.#parts.url);
    // The path is sent unchanged with each request: for some receivers a trailing slash matters.
    const baseUrl = new URL(this.#parts.url);
    baseUrl.pathname = '/';
    const connection: Connection = { baseUrl, agent, authorize: async () => ({}) };
    try {
      while (!signal.aborted) {
        const event = this.#queue.shift();
        if (event === undefined) {
          this.#drops = false;
          await this.#untilWoken(signal);
        } else this.#parts.onResult(await this.#deliver(connection, event, signal));
      }
    } finally {
      agent.destroy();
    }
  }

  async #untilWoken(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    const settled = new AbortController();
    const ended = once(signal, 'abort', { signal: settled.signal }).catch(() => undefined);
    await Promise.race([promise, ended]);
    settled.abort();
  }

  async #deliver(connection: Connection, event: object, signal: AbortSignal): Promise<NotificationResult> {
    const { url, log, retryAfterMs = RETRY_AFTER_MS } = this.#parts;
    for (const wait of [...retryAfterMs, undefined]) {
      const failure = await attempt(connection, { path: url.pathname, body: event }, signal);
      if (failure === undefined) return 'sent';
      if (failure.isFinal || wait === undefined || signal.aborted) {
        if (!signal.aborted) log.warn({ host: url.host, why: failure.why }, 'a notification was not sent');
        return 'failed';
      }
      await delay(wait, undefined, { signal }).catch(() => undefined);
    }
    return 'failed';
  }

  #isRepetition({ object, reason, message }: Notification, now: number): boolean {
    const { kind, metadata } = object;
    const key = JSON.stringify([kind, metadata.namespace, metadata.name, reason, message]);
    const before = this.#sentAt.get(key);
    if (before !== undefined && now - before < SAME_AGAIN_AFTER) return true;
    // The oldest come first in a Map.
    this.#sentAt.delete(key);
    this.#sentAt.set(key, now);
    const { value: oldest } = this.#sentAt.keys().next();
    if (this.#sentAt.size > REMEMBERED && oldest !== undefined) this.#sentAt.delete(oldest);
    return false;
  }
}

/** @returns a recorder that also notifies of every event. */
export function notifying(events: EventRecorder, notifier: Pick<Notifier, 'notify'>): EventRecorder {
  return {
    normal(object, reason, message, change) {
      events.normal(object, reason, message, change);
      notifier.notify({ type: 'Normal', object, reason, message, change });
    },
    warning(object, reason, message, change) {
      events.warning(object, reason, message, change);
      notifier.notify({ type: 'Warning', object, reason, message, change });
    },
  };
}

/** The content is that of the Kubernetes event; the object is named and not sent. */
function cloudEvent(
  { type, object, reason, message, change }: Notification,
  { source, typePrefix, now }: Pick<NotifierParts, 'source' | 'typePrefix' | 'now'>,
): object {
  const { apiVersion, kind, metadata } = object;
  const { namespace, name } = metadata;
  const place = namespace === undefined ? name : `${namespace}/${name}`;
  return {
    specversion: '1.0',
    id: randomUUID(),
    source,
    type: `${typePrefix}.${reason}`,
    subject: `${kind}/${place}`,
    time: new Date(now()).toISOString(),
    datacontenttype: 'application/json',
    data: {
      type,
      reason,
      message,
      object: { apiVersion, kind, namespace, name },
      change,
    },
  };
}

interface Failure {
  readonly why: string;
  /** Sending it again would not help. */
  readonly isFinal: boolean;
}

async function attempt(
  connection: Connection,
  given: { readonly path: string; readonly body: object },
  signal: AbortSignal,
): Promise<Failure | undefined> {
  try {
    const response = await send(connection, {
      ...given,
      method: 'POST',
      contentType: 'application/cloudevents+json; charset=utf-8',
      signal: AbortSignal.any([signal, AbortSignal.timeout(DEADLINE)]),
    });
    response.resume();
    const { statusCode: status = 0 } = response;
    if (status >= 200 && status < 300) return undefined;
    return {
      why: `the receiver answers ${status}`,
      isFinal: status < 500 && status !== 408 && status !== 429,
    };
  } catch (error) {
    // Node's messages have the address of the host, and never the path or the query.
    return { why: errorMessage(error), isFinal: false };
  }
}
