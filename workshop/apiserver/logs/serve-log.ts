import { once } from 'node:events';
import type { Exchange } from '../http/exchange.ts';
import { at, objectsAt, stringAt } from '../json.ts';
import type { ObjectContext } from '../objects/object-metadata.ts';
import { requireObject } from '../objects/update-object.ts';
import { builtinResource } from '../resources/builtin.ts';
import { bucketOf } from '../resources/resource.ts';
import { badRequest, StatusError } from '../status.ts';
import type { Change } from '../store/store.ts';
import type { StoredObject } from '../stored-object.ts';
import { type LogOptions, parseLogOptions } from './log-options.ts';

/** Whose log it is. */
export interface LogTarget {
  readonly namespace: string;
  readonly pod: string;
  readonly uid: string;
  readonly node: string;
  readonly container: string;
}

/**
 * What a kubelet does: reads the log of a container on its node.
 *
 * @param end aborted when the container has ended, or nobody reads any more: a log that is followed ends then.
 * @throws Error for a log that can't be read.
 */
export type ReadContainerLog = (
  target: LogTarget,
  options: LogOptions,
  end: AbortSignal,
) => AsyncIterable<string>;

const PODS = builtinResource('', 'pods');

/**
 * Answers `kubectl logs`.
 *
 * @param read undefined where no kubelets are.
 * @throws StatusError 400 for a container that has no log, 404, 422.
 */
export async function serveLog(
  context: ObjectContext,
  { query, response }: Exchange,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  read: ReadContainerLog | undefined,
): Promise<void> {
  const options = parseLogOptions(query, context.now());
  const pod = requireObject(context, { resource: PODS, namespace, name });
  const container = chosenContainer(pod, query.get('container') ?? '');
  const node = stringAt(pod, 'spec', 'nodeName') ?? '';
  refuseWithoutLog(pod, container, options);
  if (node !== '' && read === undefined) {
    throw new StatusError(500, 'InternalError', `Internal error occurred: node ${node} has no kubelet here`);
  }
  // There is no kubelet to ask yet.
  if (node === '' || read === undefined) {
    response.writeHead(204).end();
    return;
  }
  const ended = new AbortController();
  const unsubscribe = context.store.subscribe((change) => {
    if (endsContainer(change, pod, container)) ended.abort();
  });
  response.once('close', () => ended.abort());
  try {
    const target = { namespace, pod: name, uid: pod.metadata.uid, node, container };
    const lines = read(target, options, ended.signal);
    response.writeHead(200, { 'Content-Type': 'text/plain' });
    response.flushHeaders();
    for await (const text of lines) {
      if (!response.write(text)) await Promise.race([once(response, 'drain'), once(response, 'close')]);
      if (response.destroyed) return;
    }
    response.end();
  } finally {
    unsubscribe();
  }
}

/** As `kubectl logs` names it, or the only one. */
function chosenContainer(pod: StoredObject, named: string): string {
  const { name } = pod.metadata;
  const all = ['containers', 'initContainers', 'ephemeralContainers'].flatMap((field) =>
    objectsAt(pod, 'spec', field).flatMap((each) => stringAt(each, 'name') ?? []),
  );
  const [only, ...others] = objectsAt(pod, 'spec', 'containers').flatMap(
    (each) => stringAt(each, 'name') ?? [],
  );
  if (named !== '') {
    if (all.includes(named)) return named;
    throw badRequest(`container ${named} is not valid for pod ${name}`);
  }
  if (only !== undefined && others.length === 0) return only;
  throw badRequest(`a container name must be specified for pod ${name}, choose one of: [${all.join(' ')}]`);
}

function refuseWithoutLog(pod: StoredObject, container: string, { previous }: LogOptions): void {
  const { name } = pod.metadata;
  const quoted = `container ${JSON.stringify(container)} in pod ${JSON.stringify(name)}`;
  if (stringAt(pod, 'spec', 'nodeName') === undefined) return;
  // Of one that waits for its restart, there is the log of what has ended.
  if (restarts(pod, container) > 0) return;
  if (previous) throw badRequest(`previous terminated ${quoted} not found`);
  if (stringAt(pod, 'status', 'phase') === 'Pending') {
    throw badRequest(`${quoted} is waiting to start: ContainerCreating`);
  }
}

function endsContainer({ bucket, type, object }: Change, pod: StoredObject, container: string): boolean {
  if (bucket !== bucketOf(PODS) || object.metadata.uid !== pod.metadata.uid) return false;
  if (type === 'deleted') return true;
  const phase = stringAt(object, 'status', 'phase');
  return (
    phase === 'Succeeded' || phase === 'Failed' || restarts(object, container) > restarts(pod, container)
  );
}

function restarts(pod: StoredObject, container: string): number {
  const status = objectsAt(pod, 'status', 'containerStatuses').find(({ name }) => name === container);
  return Number(at(status, 'restartCount') ?? 0);
}
