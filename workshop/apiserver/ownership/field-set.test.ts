import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  difference,
  type FieldSet,
  intersection,
  isEmpty,
  LEAF,
  parseFieldSet,
  pathTexts,
  reconciled,
  sorted,
  union,
  without,
} from './field-set.ts';
import { DEDUCED, type MapType, UNTYPED } from './merge-type.ts';

const elements = fc.constantFrom('f:a', 'f:b', 'k:{"name":"x"}', 'v:1', 'v:"y"');
const { sets } = fc.letrec<{ node: FieldSet; sets: FieldSet }>((tie) => ({
  node: fc.oneof(
    { depthSize: 'small' },
    fc.constant(LEAF),
    fc.tuple(fc.boolean(), tie('sets')).map(([isMember, below]) => {
      return isMember && !isEmpty(below) ? { '.': LEAF, ...below } : below;
    }),
  ),
  sets: fc.dictionary(elements, tie('node'), { maxKeys: 3 }),
}));

/** @returns the fields of a set, one by one. */
const members = (set: FieldSet) => new Set(pathTexts(set));

describe('the fields of', () => {
  test.each<[string, typeof union, (inA: boolean, inB: boolean) => boolean]>([
    ['a union', union, (inA, inB) => inA || inB],
    ['an intersection', intersection, (inA, inB) => inA && inB],
    ['a difference', difference, (inA, inB) => inA && !inB],
  ])('%s are those that it should have', (_, operation, isIn) => {
    fc.assert(
      fc.property(sets, sets, (a, b) => {
        const [inA, inB] = [members(a), members(b)];
        const expected = [...inA, ...inB].filter((path) => isIn(inA.has(path), inB.has(path)));
        expect(members(operation(a, b))).toEqual(new Set(expected));
      }),
    );
  });

  test('a set without another are those that are not in it nor below one of it', () => {
    const set: FieldSet = { 'f:a': { '.': {}, 'f:b': {}, 'f:c': { 'f:d': {} } }, 'f:e': {} };
    expect(pathTexts(without(set, { 'f:a': { 'f:c': {} } }))).toEqual(['.a', '.e', '.a.b']);
    expect(pathTexts(without(set, { 'f:a': {} }))).toEqual(['.e']);
  });
});

test('paths are written as in messages', () => {
  const items = { 'k:{"name":"a","port":80}': { 'f:image': {} }, 'v:"x"': {}, 'v:2': {}, 'i:3': {} };
  expect(pathTexts({ 'f:spec': { 'f:list': items } })).toEqual([
    '.spec.list[=2]',
    '.spec.list[="x"]',
    '.spec.list[3]',
    '.spec.list[name="a",port=80].image',
  ]);
});

test('elements are sorted as kube-apiserver sorts them: itself, fields, keys by their values, values', () => {
  const set: FieldSet = {
    'v:10': {},
    'v:9': {},
    'v:"a"': {},
    'k:{"port":443}': {},
    'k:{"port":80}': {},
    'k:{"name":"a","port":80}': {},
    'k:{"name":"a"}': {},
    'f:b': {},
    'f:a': {},
    '.': {},
  };
  expect(Object.keys(sorted(set))).toEqual([
    '.',
    'f:a',
    'f:b',
    'k:{"name":"a"}',
    'k:{"name":"a","port":80}',
    'k:{"port":80}',
    'k:{"port":443}',
    'v:9',
    'v:10',
    'v:"a"',
  ]);
});

test('fieldsV1 of a client is read whatever its order and its spaces', () => {
  const sent = { 'k:{ "port": 80, "name": "a<b" }': { '.': {}, 'f:x': {} }, 'v: "y"': {} };
  expect(parseFieldSet(sent)).toEqual({
    'k:{"name":"a\\u003cb","port":80}': { '.': {}, 'f:x': {} },
    'v:"y"': {},
  });
  for (const bad of [{ spec: {} }, { 'k:1': {} }, { 'v:{': {} }, { 'f:a': 1 }]) {
    expect(() => parseFieldSet(bad)).toThrow();
  }
});

test('what is owned below a field that has become atomic is now the field', () => {
  const set: FieldSet = { 'f:a': { 'f:b': { '.': {}, 'f:c': {} } }, 'f:d': {} };
  const map: MapType = {
    atomic: false,
    fields: new Map([['a', UNTYPED]]),
    others: DEDUCED,
    open: false,
    defaults: new Map(),
    always: new Set(),
  };
  expect(reconciled(set, { map })).toEqual({ 'f:a': {}, 'f:d': {} });
  expect(reconciled(set, DEDUCED)).toEqual(set);
});
