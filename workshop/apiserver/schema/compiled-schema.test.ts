import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Json, JsonObject } from '../json.ts';
import { applyDefaults, compileSchema, prune } from './compiled-schema.ts';
import { parseSchema } from './structural-schema.ts';

const spec = (properties: JsonObject, more: JsonObject = {}): JsonObject => ({
  type: 'object',
  properties: { spec: { type: 'object', properties, ...more } },
});

const problemsOf = (schema: JsonObject, value: Json, old?: Json) =>
  compileSchema(schema)
    .admit({ spec: value }, old === undefined ? undefined : { spec: old })
    .problems.map(({ field, message }) => `${field}: ${message}`);

describe('values', () => {
  test.each<[string, JsonObject, Json, string[]]>([
    ['a null where none may be, which is no field', { a: { type: 'string' } }, { a: null }, []],
    ['a null where one may be', { a: { type: 'string', nullable: true } }, { a: null }, []],
    [
      'int or string',
      { a: { 'x-kubernetes-int-or-string': true } },
      { a: true },
      ['spec.a: Invalid value: "boolean": spec.a in body must be of type integer,string: "boolean"'],
    ],
    ['a percentage as int or string', { a: { 'x-kubernetes-int-or-string': true } }, { a: '10%' }, []],
    [
      'too few items',
      { a: { type: 'array', minItems: 1, items: { type: 'string' } } },
      { a: [] },
      ['spec.a: Invalid value: 0: spec.a in body should have at least 1 items'],
    ],
    [
      'an item of a set twice',
      { a: { type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'string' } } },
      { a: ['x', 'x'] },
      ['spec.a[1]: Duplicate value: "x"'],
    ],
    [
      'a time that is none',
      { a: { type: 'string', format: 'date-time' } },
      { a: 'soon' },
      ['spec.a: Invalid value: "soon": spec.a in body must be of type date-time: "soon"'],
    ],
    [
      'too short a text',
      { a: { type: 'string', minLength: 1 } },
      { a: '' },
      ['spec.a: Invalid value: "": spec.a in body should be at least 1 chars long'],
    ],
    [
      'an exclusive minimum',
      { a: { type: 'number', minimum: 0, exclusiveMinimum: true } },
      { a: 0 },
      ['spec.a: Invalid value: 0: spec.a in body should be greater than 0'],
    ],
    [
      'values of a map',
      { a: { type: 'object', additionalProperties: { type: 'integer' } } },
      { a: { x: 'y' } },
      ['spec.a.x: Invalid value: "string": spec.a.x in body must be of type integer: "string"'],
    ],
    [
      'one of several',
      {
        a: {
          type: 'object',
          'x-kubernetes-preserve-unknown-fields': true,
          oneOf: [{ required: ['x'] }, { required: ['y'] }],
        },
      },
      { a: { x: 1, y: 1 } },
      ['spec.a: Invalid value: "object": spec.a in body must validate one and only one schema (oneOf)'],
    ],
  ])('%s', (_, properties, value, expected) => {
    expect(problemsOf(spec(properties), value)).toEqual(expected);
  });

  test('a schema that is not structural is an error that names the place', () => {
    expect(() => compileSchema(spec({ a: { description: 'no type' } }))).toThrow(
      'properties[spec].properties[a].type',
    );
    expect(() => compileSchema(spec({ a: { type: 'string', pattern: '(' } }))).toThrow('pattern');
  });
});

describe('rules', () => {
  const rules = (...list: readonly JsonObject[]) =>
    spec({ a: { type: 'integer' }, b: { type: 'integer' } }, { 'x-kubernetes-validations': list });

  test('hold the value against its old self, where there is one', () => {
    const schema = rules({ rule: 'self.a >= oldSelf.a', message: 'a must not fall' });
    expect(problemsOf(schema, { a: 1 })).toEqual([]);
    expect(problemsOf(schema, { a: 1 }, { a: 2 })).toEqual([
      'spec: Invalid value: "object": a must not fall',
    ]);
  });

  test('may ask about an old self that need not be there', () => {
    const rule = 'oldSelf.hasValue() ? self.a >= oldSelf.value().a : self.a == 0';
    const schema = rules({ rule, optionalOldSelf: true, message: 'no' });
    expect(problemsOf(schema, { a: 0 })).toEqual([]);
    expect(problemsOf(schema, { a: 1 })).toHaveLength(1);
    expect(problemsOf(schema, { a: 1 }, { a: 2 })).toHaveLength(1);
    expect(problemsOf(schema, { a: 3 }, { a: 2 })).toEqual([]);
  });

  test('say what their message expression makes', () => {
    const schema = rules({ rule: 'self.a < self.b', messageExpression: "'a is ' + string(self.a)" });
    expect(problemsOf(schema, { a: 3, b: 2 })).toEqual(['spec: Invalid value: "object": a is 3']);
  });

  test('see a string of the format byte as bytes', () => {
    const schema = spec({
      data: {
        type: 'string',
        format: 'byte',
        'x-kubernetes-validations': [{ rule: "string(self).startsWith('key ')", message: 'no key' }],
      },
    });
    expect(problemsOf(schema, { data: Buffer.from('key 1').toString('base64') })).toEqual([]);
    expect(problemsOf(schema, { data: Buffer.from('cat').toString('base64') })).toHaveLength(1);
  });

  test("know the classes of Go's patterns", () => {
    const schema = rules({ rule: "string(self.a).matches('^[[:xdigit:]]$')", message: 'no digit' });
    expect(problemsOf(schema, { a: 7 })).toEqual([]);
    expect(problemsOf(schema, { a: 17 })).toHaveLength(1);
    expect(problemsOf(spec({ a: { type: 'string', pattern: '^[[:upper:]_]+$' } }), { a: 'A_B' })).toEqual([]);
  });

  test('that can not be evaluated do not hold', () => {
    expect(problemsOf(rules({ rule: 'self.a < self.b', message: 'm' }), { a: 1 })).toHaveLength(1);
  });

  test('are not asked of a value that is not what they rely on', () => {
    const [first, second] = problemsOf(rules({ rule: 'self.a < self.b' }), { a: 'x', b: 1 });
    expect(first).toContain('must be of type integer');
    expect(second).toContain('some validation rules were not checked');
  });

  test('that can not be parsed are refused', () => {
    expect(() => compileSchema(rules({ rule: 'self.a <' }))).toThrow('"self.a <"');
    expect(() => compileSchema(rules({ rule: 'other.a == 1' }))).toThrow('other');
    expect(() => compileSchema(rules({ rule: 'frobnicate(self.a)' }))).toThrow('frobnicate');
  });

  test('of items of a list-map see the item of the same key', () => {
    const schema = spec({
      list: {
        type: 'array',
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['k'],
        items: {
          type: 'object',
          properties: { k: { type: 'string' }, v: { type: 'string' } },
          'x-kubernetes-validations': [{ rule: 'self.v == oldSelf.v', message: 'immutable' }],
        },
      },
    });
    const before = {
      list: [
        { k: 'a', v: '1' },
        { k: 'b', v: '2' },
      ],
    };
    expect(
      problemsOf(
        schema,
        {
          list: [
            { k: 'b', v: '2' },
            { k: 'c', v: '3' },
          ],
        },
        before,
      ),
    ).toEqual([]);
    expect(problemsOf(schema, { list: [{ k: 'b', v: '9' }] }, before)).toEqual([
      'spec.list[0]: Invalid value: "object": immutable',
    ]);
  });
});

test('pruning and defaulting twice is doing it once', () => {
  const schema = parseSchema(
    spec({
      a: { type: 'string', default: 'x' },
      o: { type: 'object', default: {}, properties: { n: { type: 'integer', default: 1 } } },
      l: { type: 'array', items: { type: 'object', properties: { a: { type: 'string', default: 'y' } } } },
    }),
  );
  const fill = (value: Json) => applyDefaults(schema, prune(schema, value, true));
  fc.assert(
    fc.property(fc.dictionary(fc.constantFrom('spec', 'a', 'o', 'l'), fc.jsonValue()), (value) => {
      const once = fill({ spec: value as Json });
      expect(fill(once)).toEqual(once);
    }),
  );
  expect(fill({ spec: { l: [{}], smile: 1 } })).toEqual({ spec: { a: 'x', o: { n: 1 }, l: [{ a: 'y' }] } });
});
