import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { applyMergePatch } from '../http/patch-object.ts';
import type { Json, JsonObject } from '../json.ts';
import { applyJsonPatch } from './json-patch.ts';
import { applyStrategicMergePatch } from './strategic-merge-patch.ts';

describe('JSON patch', () => {
  test.each<[string, Json, Json, Json]>([
    ['adds a field', { a: 1 }, [{ op: 'add', path: '/b', value: 2 }], { a: 1, b: 2 }],
    ['adds into a list', { a: [1, 3] }, [{ op: 'add', path: '/a/1', value: 2 }], { a: [1, 2, 3] }],
    ['appends', { a: [1] }, [{ op: 'add', path: '/a/-', value: 2 }], { a: [1, 2] }],
    ['removes', { a: { b: 1, c: 2 } }, [{ op: 'remove', path: '/a/b' }], { a: { c: 2 } }],
    ['replaces', { a: [{ b: 1 }] }, [{ op: 'replace', path: '/a/0/b', value: 2 }], { a: [{ b: 2 }] }],
    ['moves', { a: 1 }, [{ op: 'move', from: '/a', path: '/b' }], { b: 1 }],
    ['copies', { a: 1 }, [{ op: 'copy', from: '/a', path: '/b' }], { a: 1, b: 1 }],
    ['reads escapes', { 'a/b~c': 1 }, [{ op: 'replace', path: '/a~1b~0c', value: 2 }], { 'a/b~c': 2 }],
    [
      'goes on after a test',
      { a: 1 },
      [
        { op: 'test', path: '/a', value: 1 },
        { op: 'remove', path: '/a' },
      ],
      {},
    ],
  ])('%s', (_, document, patch, expected) => {
    expect(applyJsonPatch(document, patch)).toEqual(expected);
  });

  test.each<[string, Json]>([
    ['a test that fails', [{ op: 'test', path: '/a', value: 2 }]],
    ['a field that is not there', [{ op: 'remove', path: '/x' }]],
    ['an index beyond the list', [{ op: 'add', path: '/l/3', value: 1 }]],
    ['an unknown operation', [{ op: 'smile', path: '/a' }]],
    ['no list', { op: 'add' }],
  ])('refuses %s', (_, patch) => {
    expect(() => applyJsonPatch({ a: 1, l: [1] }, patch)).toThrow();
  });
});

describe('merge patch', () => {
  test.each<[string, Json, Json, Json]>([
    ['merges objects', { a: { b: 1 } }, { a: { c: 2 } }, { a: { b: 1, c: 2 } }],
    ['removes by null', { a: 1, b: 2 }, { a: null }, { b: 2 }],
    ['replaces lists', { a: [1, 2] }, { a: [3] }, { a: [3] }],
    ['drops nulls of what is new', {}, { a: { b: null } }, { a: {} }],
  ])('%s', (_, document, patch, expected) => {
    expect(applyMergePatch(document, patch)).toEqual(expected);
  });

  test('applied twice is applied once', () => {
    const object = fc.dictionary(fc.string(), fc.jsonValue());
    fc.assert(
      fc.property(object, object, (document, patch) => {
        const once = applyMergePatch(document as JsonObject, patch as JsonObject);
        expect(applyMergePatch(once, patch as JsonObject)).toEqual(once);
      }),
    );
  });
});

describe('strategic merge patch', () => {
  const pod = {
    spec: {
      containers: [
        { name: 'a', image: '1' },
        { name: 'b', image: '1' },
      ],
      tolerations: [{ key: 'x' }],
    },
  };

  test('merges lists by their key and replaces those without', () => {
    const patch = { spec: { containers: [{ name: 'b', image: '2' }], tolerations: [{ key: 'y' }] } };
    expect(applyStrategicMergePatch(pod, patch)).toEqual({
      spec: {
        containers: [
          { name: 'a', image: '1' },
          { name: 'b', image: '2' },
        ],
        tolerations: [{ key: 'y' }],
      },
    });
  });

  test('deletes items and primitive values, and orders', () => {
    const document = {
      metadata: { finalizers: ['a', 'b'] },
      status: { conditions: [{ type: 'X' }, { type: 'Y' }] },
    };
    const patch = {
      metadata: { '$deleteFromPrimitiveList/finalizers': ['a'], finalizers: ['c'] },
      status: {
        conditions: [
          { type: 'X', $patch: 'delete' },
          { type: 'Z', status: 'True' },
        ],
        '$setElementOrder/conditions': [{ type: 'Z' }, { type: 'Y' }],
      },
    };
    expect(applyStrategicMergePatch(document, patch)).toEqual({
      metadata: { finalizers: ['b', 'c'] },
      status: { conditions: [{ type: 'Z', status: 'True' }, { type: 'Y' }] },
    });
  });

  test('replaces as a whole where told', () => {
    expect(applyStrategicMergePatch({ a: { b: 1 } }, { a: { $patch: 'replace', c: 2 } })).toEqual({
      a: { c: 2 },
    });
    expect(applyStrategicMergePatch({ a: { b: 1 } }, { a: { $retainKeys: ['c'], c: 2 } })).toEqual({
      a: { c: 2 },
    });
  });

  test('refuses an item without its key', () => {
    expect(() => applyStrategicMergePatch(pod, { spec: { containers: [{ image: 'x' }] } })).toThrow(
      'merge key',
    );
  });
});
