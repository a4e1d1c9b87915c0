import { isDeepStrictEqual } from 'node:util';
import { cutText } from '../api/cut-text.ts';
import {
  type Condition,
  type Kind,
  type KubernetesObject,
  LONGEST_MESSAGE,
  toSeconds,
} from '../api/object.ts';
import { present } from '../api/present.ts';
import { inOneLine } from '../api/visible-text.ts';
import { type ApiClient, isAlreadyExists, isConflict } from './api-client.ts';

/**
 * Reads, computes and writes an object's status, and retries on conflicts.
 *
 * @param object as it was last seen.
 * @param compute the status it should have; called again with the object as it is now after a conflict.
 * @returns the object as it is then. Nothing is written when nothing changes.
 * @throws ApiError when the object is gone or the conflicts don't end.
 */
export async function updateStatus<T extends KubernetesObject & { readonly status?: unknown }>(
  client: ApiClient,
  kind: Kind<T>,
  object: T,
  compute: (object: T) => T['status'],
  options: { readonly signal?: AbortSignal } = {},
): Promise<T> {
  const { namespace, name } = object.metadata;
  const where = { namespace, ...options };
  const write = async (current: T) => {
    const status = compute(current);
    return isDeepStrictEqual(status, current.status)
      ? current
      : client.replaceStatus(kind, { ...current, status }, where);
  };
  return writeWithRetry(object, write, () => client.get(kind, name, where));
}

interface AnnotationChange {
  readonly name: string;
  /** @returns the next value; called again with the present one after a conflict. */
  readonly compute: (before: string | undefined) => string;
}

/**
 * Writes an annotation that several writers share, so that none reverts what another has just written: the object has
 * to be as it was when the value was computed.
 *
 * @param object as it was last seen.
 * @throws ApiError when the object is gone or the conflicts don't end.
 */
export async function updateAnnotation<T extends KubernetesObject>(
  client: ApiClient,
  kind: Kind<T>,
  object: T,
  { name: annotation, compute }: AnnotationChange,
  options: { readonly signal?: AbortSignal } = {},
): Promise<void> {
  const { namespace, name } = object.metadata;
  const where = { namespace, ...options };
  const write = async ({ metadata: { annotations, resourceVersion } }: T) => {
    const value = compute(annotations?.[annotation]);
    if (annotations?.[annotation] === value) return;
    // A merge patch that names a version is refused for any other (Kubernetes API conventions, "Concurrency").
    const body = { metadata: { resourceVersion, annotations: { [annotation]: value } } };
    await client.patch(kind, name, { type: 'merge', body }, where);
  };
  await writeWithRetry(object, write, () => client.get(kind, name, where));
}

/** An object has few writers; after so many conflicts in a row, another writer reverts each change. */
const ATTEMPTS = 6;

/**
 * Reads, decides and writes again on conflicts (client-go, util/retry, RetryOnConflict).
 *
 * @param act reads the object, decides and writes it with its resourceVersion; where the object did not exist, creates
 *   it.
 * @throws what `act` throws; the last conflict when they don't end.
 */
export async function retryOnConflict<T>(act: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await act();
    } catch (error) {
      const isOutdated = isConflict(error) || isAlreadyExists(error);
      if (!isOutdated || attempt === ATTEMPTS) throw error;
    }
  }
}

/**
 * Writes an object, and retries on conflicts.
 *
 * @param object as it was last read; read again after a conflict only.
 */
function writeWithRetry<T, R>(
  object: T,
  write: (object: T) => Promise<R>,
  read: () => Promise<T>,
): Promise<R> {
  let known: T | undefined = object;
  return retryOnConflict(async () => {
    const current = known ?? (await read());
    known = undefined;
    return write(current);
  });
}

/** A condition before it is set. */
type NewCondition = Omit<Condition, 'lastTransitionTime' | 'observedGeneration'> & {
  readonly observedGeneration?: number | undefined;
};

/**
 * Sets one condition (API conventions, "Typical status properties").
 *
 * @param now when it is so.
 * @returns the conditions with this one in its place, or at the end. lastTransitionTime changes with the status only. A
 *   message of several lines becomes one, as kubectl shows conditions in tables. One that is too long is cut: the API
 *   server would refuse the whole status, and nothing would be reported.
 */
export function setCondition(
  conditions: readonly Condition[],
  { observedGeneration, ...condition }: NewCondition,
  now: Date,
): Condition[] {
  const known = conditions.find(({ type }) => type === condition.type);
  const lastTransitionTime = known?.status === condition.status ? known.lastTransitionTime : toSeconds(now);
  const message = withinLimit(inOneLine(condition.message));
  const next = { ...condition, ...present({ observedGeneration }), message, lastTransitionTime };
  return known === undefined ? [...conditions, next] : conditions.map((old) => (old === known ? next : old));
}

/** @returns a message that is not longer than a status may have it; what is cut off is marked. */
export function withinLimit(message: string): string {
  return cutText(message, LONGEST_MESSAGE);
}

/** @returns whether the condition is there and True. */
export function conditionIsTrue(conditions: readonly Condition[] | undefined, type: string): boolean {
  return conditions?.some((condition) => condition.type === type && condition.status === 'True') ?? false;
}
