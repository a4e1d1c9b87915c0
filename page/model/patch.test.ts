import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { applyPatch, diffViews, shareRows } from './patch.ts';
import { EMPTY_VIEW, type NodeRow, type PageView } from './view.ts';

const row = (state: NodeRow['state'], more: Partial<NodeRow> = {}): NodeRow => ({
  pool: 'worker',
  state,
  config: { desired: 'rendered-worker-1' },
  ready: true,
  cordoned: false,
  ...more,
});
const withNodes = (nodes: PageView['nodes']): PageView => ({ ...EMPTY_VIEW, nodes });
const withLog = (...lines: string[]): PageView => ({ ...EMPTY_VIEW, logs: { build: lines } });

const asJson = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;

describe('a patch', () => {
  test('contains only the fields that changed', () => {
    const before = withNodes({ a: row('staged', { what: 'its turn' }), b: row('updated') });
    const after = withNodes({ a: row('draining'), b: row('updated') });
    expect(diffViews(before, after)).toEqual({
      rows: { nodes: { a: { state: 'draining', what: null } } },
      logs: {},
    });
  });

  test('takes a field that is undefined for an absent one', () => {
    const [waiting, none] = [row('staged', { what: 'its turn' }), row('staged', { what: undefined })];
    expect(diffViews(withNodes({ a: waiting }), withNodes({ a: none }))?.rows.nodes).toEqual({
      a: { what: null },
    });
    expect(diffViews(withNodes({ a: none }), withNodes({ a: row('staged') }))).toBeUndefined();
  });

  test('removes and adds rows', () => {
    const before = withNodes({ a: row('updated') });
    const after = withNodes({ b: row('updated') });
    expect(diffViews(before, after)?.rows.nodes).toEqual({ a: null, b: row('updated') });
  });

  test('of two equal views is undefined', () => {
    expect(diffViews(withNodes({ a: row('updated') }), withNodes({ a: row('updated') }))).toBeUndefined();
  });

  test.each([
    ['new lines', ['a', 'b'], ['a', 'b', 'c'], { drop: 0, add: ['c'] }],
    ['a tail that moved', ['a', 'b', 'c'], ['b', 'c', 'd'], { drop: 1, add: ['d'] }],
    ['equal lines', ['a', 'a'], ['a', 'a', 'a'], { drop: 0, add: ['a'] }],
    ['another log', ['a', 'b'], ['c'], { drop: 2, add: ['c'] }],
    ['an emptied log', ['a'], [], { drop: 1, add: [] }],
  ])('of a log: %s', (_, before, after, expected) => {
    expect(diffViews(withLog(...before), withLog(...after))?.logs).toEqual({ build: expected });
  });

  test('keeps the objects of rows that it does not change', () => {
    const before = withNodes({ a: row('staged'), b: row('updated') });
    const patch = diffViews(before, withNodes({ a: row('updated'), b: row('updated') }));
    if (patch === undefined) throw new Error('nothing changed');
    const after = applyPatch(before, patch);
    expect(after.nodes['b']).toBe(before.nodes['b']);
    expect(after.pools).toBe(before.pools);
  });

  test('converts any view to any other, as JSON has them', () => {
    const views = fc.record({
      nodes: fc.dictionary(
        fc.stringMatching(/^[a-e]$/),
        fc
          .record(
            {
              state: fc.constantFrom<NodeRow['state'][]>('staged', 'updated'),
              what: fc.option(fc.string(), { nil: undefined }),
            },
            { requiredKeys: ['state'] },
          )
          .map(({ state, ...more }) => row(state, more)),
      ),
      logs: fc.dictionary(
        fc.stringMatching(/^[a-c]$/),
        fc.array(fc.constantFrom('x', 'y'), { maxLength: 6 }),
      ),
    });
    fc.assert(
      fc.property(views, views, (first, second) => {
        const before = { ...EMPTY_VIEW, ...first };
        const after = { ...EMPTY_VIEW, ...second };
        const patch = diffViews(before, after);
        const shown = asJson(before);
        expect(patch === undefined ? shown : applyPatch(shown, asJson(patch))).toEqual(asJson(after));
      }),
    );
  });
});

test('equal rows stay the same objects', () => {
  const before = withNodes({
    a: row('staged', { staging: { bytesDone: 1, bytesTotal: 2 } }),
    b: row('updated'),
  });
  const after = shareRows(
    before,
    withNodes({ a: row('staged', { staging: { bytesDone: 1, bytesTotal: 2 } }), b: row('draining') }),
  );
  expect(after.nodes['a']).toBe(before.nodes['a']);
  expect(after.nodes['b']).toEqual(row('draining'));
  expect(shareRows(before, structuredClone(before))).toBe(before);
});
