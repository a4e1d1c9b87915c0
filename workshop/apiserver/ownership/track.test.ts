import { describe, expect, test } from 'vitest';
import type { Json, JsonObject } from '../json.ts';
import { builtinResource } from '../resources/builtin.ts';
import type { Resource } from '../resources/resource.ts';
import { OBJECT_META } from './builtin-types.ts';
import { mergeTypeOfSchema } from './schema-types.ts';
import { type TrackedWrite, trackApply, trackUpdate } from './track.ts';

/** One object and its writes, without a server. */
class Tracked {
  object: JsonObject | undefined;
  readonly #resource: Resource;
  #second = 0;

  constructor(resource: Resource) {
    this.#resource = resource;
  }

  #write(manager: string): TrackedWrite {
    this.#second += 1;
    const now = `2026-01-01T00:00:${String(this.#second).padStart(2, '0')}Z`;
    const resource = this.#resource;
    return { resource, part: 'object', subresource: '', manager, now, typeOf: () => resource.mergeType };
  }

  update(manager: string, body: JsonObject): this {
    const next = this.#complete(body);
    this.#keep(next, trackUpdate(this.#write(manager), this.object, next, undefined));
    return this;
  }

  apply(manager: string, body: JsonObject, force = false): this {
    const applied = trackApply(this.#write(manager), this.object, this.#complete(body), force);
    this.#keep(applied.object, applied.managedFields);
    return this;
  }

  #complete(body: JsonObject): JsonObject {
    const { group, version, kind } = this.#resource;
    return { apiVersion: group === '' ? version : `${group}/${version}`, kind, ...body };
  }

  #keep(object: JsonObject, managedFields: Json | undefined): void {
    this.object = { ...object, metadata: { ...(object['metadata'] as JsonObject), managedFields } };
  }

  /** @returns what each owns, with the times. */
  owners(): readonly (readonly Json[])[] {
    const { managedFields = [] } = (this.object?.['metadata'] ?? {}) as {
      managedFields?: Record<string, Json>[];
    };
    return managedFields.map(({ manager = '', operation = '', time = '', fieldsV1 = {} }) => [
      manager,
      operation,
      String(time).slice(-3, -1),
      fieldsV1,
    ]);
  }
}

const deployments = builtinResource('apps', 'deployments');
const labels = (of: Record<string, string>) => ({ labels: of });

function custom(properties: JsonObject): Resource {
  const schema = { type: 'object', properties: { spec: { type: 'object', properties } } };
  return { ...builtinResource('', 'configmaps'), mergeType: mergeTypeOfSchema(schema, OBJECT_META) };
}

describe('the documented example (Kubernetes, "Transferring ownership between managers")', () => {
  const base = { template: { spec: { containers: [{ name: 'nginx', image: 'nginx:1.14.2' }] } } };
  const first = () => new Tracked(deployments).apply('kubectl', { spec: { ...base, replicas: 3 } });

  test('who scales owns the replicas once it has written them, and leaving them out then keeps them', () => {
    const scaled = first().update('scaler', { spec: { ...base, replicas: 5 } });
    expect(() => scaled.apply('kubectl', { spec: { ...base, replicas: 3 } })).toThrow(
      'Apply failed with 1 conflict: conflict with "scaler" using apps/v1: .spec.replicas',
    );
    expect(scaled.apply('kubectl', { spec: base }).object?.['spec']).toEqual({ ...base, replicas: 5 });
  });

  test('who leaves the replicas out while nobody else owns them takes them out', () => {
    expect(first().apply('kubectl', { spec: base }).object?.['spec']).toEqual(base);
  });

  test('two who apply the same share it, and one after the other may leave it', () => {
    const shared = first().apply('handover', { spec: { replicas: 3 } });
    expect(shared.apply('kubectl', { spec: base }).object?.['spec']).toEqual({ ...base, replicas: 3 });
    expect(shared.apply('handover', { spec: {} }).object?.['spec']).toEqual(base);
  });
});

test('an owner keeps its time while it writes nothing new', () => {
  const object = new Tracked(builtinResource('', 'configmaps'))
    .apply('a', { metadata: labels({ x: '1' }) })
    .apply('b', { metadata: labels({ y: '1' }) })
    .apply('a', { metadata: labels({ x: '1' }) });
  expect(object.owners()).toEqual([
    ['a', 'Apply', '01', { 'f:metadata': { 'f:labels': { 'f:x': {} } } }],
    ['b', 'Apply', '02', { 'f:metadata': { 'f:labels': { 'f:y': {} } } }],
  ]);
});

test('identity and what the server sets have no owner, and structs of the kind are no fields that come and go', () => {
  const metadata = { name: 'n', namespace: 's', uid: 'u', generation: 1, creationTimestamp: 't' };
  const template = { metadata: labels({ a: 'b' }), spec: { nodeSelector: { a: 'b' } } };
  const created = new Tracked(deployments).update('m', { metadata, spec: { template } });
  expect(created.owners()).toEqual([
    [
      'm',
      'Update',
      '01',
      {
        'f:spec': {
          'f:template': {
            'f:metadata': { 'f:labels': { '.': {}, 'f:a': {} } },
            'f:spec': { 'f:nodeSelector': {} },
          },
        },
      },
    ],
  ]);
});

test('more than ten who update become one for those of long ago', () => {
  const object = new Tracked(builtinResource('', 'configmaps')).apply('applier', { data: { z: '1' } });
  const data: Record<string, string> = { z: '1' };
  for (let i = 0; i < 12; i += 1) {
    data[`k${i}`] = '1';
    object.update(`m${i}`, { data: { ...data } });
  }
  const names = object.owners().map(([manager]) => manager);
  expect(names).toEqual(['applier', 'ancient-changes', ...[3, 4, 5, 6, 7, 8, 9, 10, 11].map((i) => `m${i}`)]);
  expect(object.owners()[1]?.[3]).toEqual({ 'f:data': { 'f:k0': {}, 'f:k1': {}, 'f:k2': {} } });
});

describe('items of a list', () => {
  const items = { type: 'object', properties: { name: { type: 'string' }, n: { type: 'integer' } } };
  const list = (...names: string[]) => ({ spec: { list: names.map((name) => ({ name })) } });
  const resource = custom({
    list: {
      type: 'array',
      items,
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name'],
    },
  });

  test.each([
    ['keep the applied order', ['a', 'b', 'c'], ['c', 'a'], ['b', 'c', 'a']],
    ['that only the live list has stay where they are', ['a', 'b', 'c'], ['c', 'd'], ['a', 'b', 'c', 'd']],
    ['that are new come where they were applied', ['a', 'b'], ['x', 'a', 'y', 'b'], ['x', 'a', 'y', 'b']],
    ['of both', ['a', 'b', 'c', 'd'], ['d', 'x', 'b'], ['a', 'c', 'd', 'x', 'b']],
  ])('%s', (_, live, applied, expected) => {
    const object = new Tracked(resource).apply('a', list(...live)).apply('b', list(...applied));
    expect(object.object?.['spec']).toEqual(list(...expected).spec);
  });

  test('without their keys are refused', () => {
    expect(() => new Tracked(resource).apply('a', { spec: { list: [{ n: 1 }] } })).toThrow(
      '.spec.list: element 0: associative list with keys has an element that omits all key fields ["name"]',
    );
  });

  test('that can not be told apart in an update cost it nothing but its owners', () => {
    const object = new Tracked(resource).update('a', list('x'));
    const known = object.owners();
    expect(object.update('b', { spec: { list: [{ n: 1 }] } }).owners()).toEqual(known);
  });
});
