import { at, isObject, type JsonObject, stringAt, withField } from '../json.ts';
import type { ObjectContext, Writer } from '../objects/object-metadata.ts';
import { type ObjectName, requireObject, updateObject } from '../objects/update-object.ts';
import { badRequest, methodNotAllowed } from '../status.ts';
import type { StoredObject } from '../stored-object.ts';
import { stringMap } from '../stored-object.ts';
import { type Exchange, readObject, send } from './exchange.ts';
import { readPatch } from './patch-object.ts';

/**
 * Answers `kubectl scale`: reads and writes spec.replicas as an autoscaling/v1 Scale.
 *
 * @throws StatusError 400, 404, 405, 409, 415.
 */
export async function serveScale(
  context: ObjectContext,
  { request, response }: Exchange,
  target: ObjectName,
  writer: Writer,
): Promise<void> {
  if (request.method === 'GET') {
    send(response, 200, scaleOf(requireObject(context, target)));
    return;
  }
  const change = await readChange(request, target);
  const updated = await updateObject(
    context,
    target,
    'object',
    (current) => {
      const scale = change(scaleOf(current));
      const replicas = at(scale, 'spec', 'replicas') ?? 0;
      if (typeof replicas !== 'number' || !Number.isInteger(replicas) || replicas < 0) {
        throw badRequest(`spec.replicas: ${JSON.stringify(replicas)} is no number of pods`);
      }
      // Who names a version writes to that one alone.
      const version = stringAt(scale, 'metadata', 'resourceVersion') ?? current.metadata.resourceVersion;
      const scaled = withField(current, ['spec', 'replicas'], replicas);
      return withField(scaled, ['metadata', 'resourceVersion'], version);
    },
    { ...writer, subresource: 'scale' },
  );
  send(response, 200, scaleOf(updated));
}

type Change = (scale: StoredObject) => JsonObject;

async function readChange(request: Exchange['request'], { resource }: ObjectName): Promise<Change> {
  if (request.method === 'PATCH') return readPatch(request, resource);
  if (request.method !== 'PUT') throw methodNotAllowed();
  const body = await readObject(request);
  return () => body;
}

function scaleOf(object: StoredObject): StoredObject {
  const { name, namespace = '', uid, resourceVersion, creationTimestamp } = object.metadata;
  const labels = stringMap(at(object, 'spec', 'selector', 'matchLabels'));
  const selector = Object.entries(labels).map(([key, value]) => `${key}=${value}`);
  const spec = isObject(object['spec']) ? object['spec'] : {};
  const replicas = spec['replicas'] ?? 1;
  return {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: { name, namespace, uid, resourceVersion, creationTimestamp },
    // `omitempty` in autoscaling/v1: none is left out.
    spec: replicas === 0 ? {} : { replicas },
    status: { replicas: at(object, 'status', 'replicas') ?? 0, selector: selector.join(',') },
  };
}
