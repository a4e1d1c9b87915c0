import { createHash } from 'node:crypto';
import type { Logger } from 'pino';
import { type ChangeId, changeOf } from '../api/change-id.ts';
import type { NormalReason, WarningReason } from '../api/events.ts';
import { Events, type KubernetesEvent } from '../api/kubernetes.ts';
import type { BuildFailureReason } from '../api/machine-os-build.ts';
import { labels } from '../api/names.ts';
import { type KubernetesObject, type NewObject, toSeconds } from '../api/object.ts';
import { inOneLine } from '../api/visible-text.ts';
import { type ApiClient, isAlreadyExists } from './api-client.ts';

/** Records events for `kubectl describe`. Fire and forget: it never fails the work that it records. */
export interface EventRecorder {
  /** @param change that the event belongs to; the event is labelled with its id. */
  normal(object: KubernetesObject, reason: NormalReason, message: string, change?: ChangeId): void;
  warning(
    object: KubernetesObject,
    reason: WarningReason | BuildFailureReason,
    message: string,
    change?: ChangeId,
  ): void;
}

/** The API server's limit on an event's message (core/v1 validation). */
const LONGEST_MESSAGE = 1024;
/** Events of cluster-scoped objects live here, as kubectl describe expects. */
const CLUSTER_SCOPED_NAMESPACE = 'default';
const DEADLINE_MS = 10_000;

/**
 * @param component that reports, such as shale-operator.
 * @returns a recorder that creates each event once and increments its count when it is recorded again.
 */
export function createEventRecorder(client: ApiClient, component: string, log: Logger): EventRecorder {
  const counts = new Map<string, number>();

  async function write(event: NewObject<KubernetesEvent>, name: string, namespace: string): Promise<void> {
    const signal = AbortSignal.timeout(DEADLINE_MS);
    const count = (counts.get(name) ?? 0) + 1;
    counts.set(name, count);
    try {
      await client.create(Events, event, { namespace, signal });
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      const body = { count, lastTimestamp: event.lastTimestamp };
      await client.patch(Events, name, { type: 'merge', body }, { namespace, signal });
    }
  }

  function record(
    type: 'Normal' | 'Warning',
    object: KubernetesObject,
    reason: string,
    text: string,
    change: ChangeId | undefined,
  ): void {
    const message = inOneLine(text).slice(0, LONGEST_MESSAGE);
    const namespace = object.metadata.namespace ?? CLUSTER_SCOPED_NAMESPACE;
    const name = eventName(object, [component, reason, message, ...(change === undefined ? [] : [change])]);
    const now = toSeconds(new Date());
    const event = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name, namespace, labels: change && { [labels.change]: change } },
      involvedObject: {
        apiVersion: object.apiVersion,
        kind: object.kind,
        name: object.metadata.name,
        namespace: object.metadata.namespace,
        uid: object.metadata.uid,
      },
      type,
      reason,
      message,
      source: { component },
      reportingComponent: component,
      firstTimestamp: now,
      lastTimestamp: now,
      count: 1,
    };
    write(event, name, namespace).catch((error: unknown) =>
      log.warn({ object: object.metadata.name, reason, err: error }, 'event could not be written'),
    );
  }

  return {
    normal: (object, reason, message, change) => record('Normal', object, reason, message, change),
    warning: (object, reason, message, change) => record('Warning', object, reason, message, change),
  };
}

/**
 * Of a name, as of every object (Kubernetes, "Object Names and IDs"); of its end, which distinguishes events of one
 * object.
 */
const LONGEST_NAME = 253;
const DIGITS = 16;

/** Equal events have one name, so that the second is found as the first again. */
function eventName({ metadata }: KubernetesObject, parts: readonly string[]): string {
  const { uid = '', namespace = '', name } = metadata;
  const identity = JSON.stringify([uid, namespace, ...parts]);
  // After the cut, a dot or a hyphen may be at the end, where no part of a name may have one.
  const beginning = name.slice(0, LONGEST_NAME - DIGITS - 1).replace(/(?<![.-])[.-]+$/, '');
  return `${beginning}.${createHash('sha256').update(identity).digest('hex').slice(0, DIGITS)}`;
}

/** Where a process reports what it does. */
export interface Reporters {
  readonly log: Logger;
  readonly events: EventRecorder;
}

/**
 * @param config name of the rendered config that the work leads to; undefined where there is none, and nothing is
 *   added.
 * @returns the same reporters, with the change's id in every line (`change`) and on every event (label
 *   shale.dev/change).
 */
export function aboutChange({ log, events }: Reporters, config: string | undefined): Reporters {
  if (config === undefined || config === '') return { log, events };
  const change = changeOf(config);
  return {
    log: log.child({ change }),
    events: {
      normal: (object, reason, message) => events.normal(object, reason, message, change),
      warning: (object, reason, message) => events.warning(object, reason, message, change),
    },
  };
}

/** @returns the field for log lines about a rendered config. */
export function changeField(config: string | undefined): { readonly change?: string } {
  return config === undefined || config === '' ? {} : { change: changeOf(config) };
}
