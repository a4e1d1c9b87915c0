import { describe, expect, test } from 'vitest';
import type { StoredObject } from '../stored-object.ts';
import {
  age,
  ageColumn,
  parseJsonPath,
  pathColumn,
  renderTable,
  wantsMetadata,
  wantsTable,
} from './table.ts';

const now = new Date('2026-01-02T00:00:00Z');
const object: StoredObject = {
  apiVersion: 'v1',
  kind: 'Thing',
  metadata: {
    name: 'a',
    uid: 'u',
    resourceVersion: '1',
    creationTimestamp: '2026-01-01T23:55:00Z',
    labels: { 'example.org/x': 'y' },
  },
  spec: { count: 3, list: [1, 2] },
  status: { conditions: [{ type: 'Ready', status: 'True' }] },
};

test.each([
  ['.spec.count', [3]],
  ['.metadata.labels.example\\.org/x', ['y']],
  [".metadata.labels['example.org/x']", ['y']],
  ['.status.conditions[?(@.type=="Ready")].status', ['True']],
  [`.status.conditions[?(@.type=='Gone')].status`, []],
  ['.spec.list[*]', [1, 2]],
  ['.spec.list[-1]', [2]],
])('the path %s finds %j', (path, expected) => {
  expect(parseJsonPath(path)(object)).toEqual(expected);
});

test('a path that can not be read is an error that shows it', () => {
  expect(() => parseJsonPath('.a[?(@.b > 1)]')).toThrow('.a[?(@.b > 1)]');
});

test.each([
  ['2026-01-02T00:00:00Z', '0s'],
  ['2026-01-01T23:58:30Z', '90s'],
  ['2026-01-01T23:55:00Z', '5m'],
  ['2026-01-01T23:54:50Z', '5m10s'],
  ['2026-01-01T20:30:00Z', '3h30m'],
  ['2025-12-31T00:00:00Z', '2d'],
  ['2025-01-01T00:00:00Z', '366d'],
  ['2026-01-02T00:01:00Z', '<invalid>'],
  ['x', '<unknown>'],
])('an object of %s is %s old', (since, expected) => {
  expect(age(since, now)).toBe(expected);
});

describe('a table', () => {
  const columns = [
    pathColumn('Count', '.spec.count', { type: 'integer' }),
    pathColumn('Missing', '.spec.missing'),
    pathColumn('Since', '.metadata.creationTimestamp', { type: 'date', priority: 1 }),
    ageColumn,
  ];

  test('has a row for each object and what was asked of the object', () => {
    const table = renderTable(
      [object],
      columns,
      { resourceVersion: '7' },
      { now, includeObject: 'Metadata', withColumns: true },
    );
    expect(table).toMatchObject({
      kind: 'Table',
      metadata: { resourceVersion: '7' },
      rows: [
        {
          cells: ['a', 3, '', '5m', '5m'],
          object: { kind: 'PartialObjectMetadata', metadata: { name: 'a' } },
        },
      ],
    });
    expect(JSON.stringify(table['columnDefinitions'])).toContain(
      '"name":"Since","type":"string","format":"","description":"","priority":1',
    );
  });

  test.each([
    ['application/json;as=Table;v=v1;g=meta.k8s.io,application/json', true],
    ['application/json', false],
    ['application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1', false],
  ])('is wanted by Accept: %s: %s', (accept, expected) => {
    expect(wantsTable(accept)).toBe(expected);
  });

  test.each([
    ['application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1', true],
    ['application/json', false],
    ['application/json;as=Table;v=v1;g=meta.k8s.io', false],
  ])('is not what Accept: %s asks for, but metadata alone: %s', (accept, expected) => {
    expect(wantsMetadata(accept)).toBe(expected);
  });
});
