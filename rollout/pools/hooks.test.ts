import { describe, expect, it } from 'vitest';
import { aNode } from '../../test/fixtures/objects.ts';
import { formatHooks, hookRequestOn, hookStep, parseHooks, withoutHooks } from './hooks.ts';

const NOW = Date.parse('2026-06-01T12:00:00Z');
const SINCE = '2026-06-01T11:00:00.000Z';
const node = (annotations: Readonly<Record<string, string>> = {}) =>
  aNode('a', { metadata: { name: 'a', annotations } });
const requested = (phase: 'before' | 'after', ...pending: readonly string[]) =>
  node({
    'shale.dev/hooks': `${phase} ${SINCE}`,
    ...Object.fromEntries(pending.map((name) => [`${phase}.hooks.shale.dev/${name}`, 'requested'])),
  });

it.each<[string, readonly string[]]>([
  ['', []],
  ['lb', ['lb']],
  ['lb, storage.example.com lb', ['lb', 'storage.example.com']],
])('the names of %j', (text, names) => expect(parseHooks(text)).toEqual(names));

it.each(['-lb', 'lb/x', 'a'.repeat(64)])('%j is no name', (text) =>
  expect(() => parseHooks(`ok,${text}`)).toThrow(/is no name of a hook/),
);

describe('the hooks of a node', () => {
  it('are requested once', () => {
    expect(hookStep(node({ other: '1' }), 'before', ['lb', 'disk'], NOW)).toEqual({
      kind: 'request',
      annotations: {
        'shale.dev/hooks': 'before 2026-06-01T12:00:00.000Z',
        'before.hooks.shale.dev/lb': 'requested',
        'before.hooks.shale.dev/disk': 'requested',
      },
    });
  });

  it('hold it until each of them is cleared', () => {
    const request = { phase: 'before', since: Date.parse(SINCE), pending: ['disk', 'lb'] };
    const names = ['lb', 'disk'];
    expect(hookStep(requested('before', 'lb', 'disk'), 'before', names, NOW)).toEqual({
      kind: 'wait',
      request,
    });
    expect(hookStep(requested('before', 'lb'), 'before', names, NOW)).toMatchObject({
      request: { pending: ['lb'] },
    });
    expect(hookStep(requested('before'), 'before', names, NOW)).toEqual({ kind: 'done' });
  });

  it('hold nothing that the pool does not name any more, or names only since', () => {
    expect(hookStep(requested('before', 'lb'), 'before', ['disk'], NOW)).toEqual({ kind: 'done' });
    expect(hookStep(requested('before', 'lb'), 'before', [], NOW)).toEqual({ kind: 'done' });
  });

  it('of the next phase take the place of what is left of the one before', () => {
    expect(hookStep(requested('before', 'gone'), 'after', ['gpu'], NOW)).toEqual({
      kind: 'request',
      annotations: {
        'before.hooks.shale.dev/gone': null,
        'shale.dev/hooks': 'after 2026-06-01T12:00:00.000Z',
        'after.hooks.shale.dev/gpu': 'requested',
      },
    });
  });

  it('are requested again where the record is no record', () => {
    const odd = node({ 'shale.dev/hooks': 'now', 'before.hooks.shale.dev/lb': 'requested' });
    expect(hookRequestOn(odd)).toBeUndefined();
    expect(hookStep(odd, 'before', ['lb'], NOW)).toMatchObject({
      annotations: { 'before.hooks.shale.dev/lb': 'requested' },
    });
  });

  it('leave nothing', () => {
    const set = {
      'shale.dev/hooks': '',
      'before.hooks.shale.dev/a': '',
      'after.hooks.shale.dev/b': '',
      other: '',
    };
    expect(withoutHooks(node(set))).toEqual({
      'shale.dev/hooks': null,
      'before.hooks.shale.dev/a': null,
      'after.hooks.shale.dev/b': null,
    });
    expect(withoutHooks(node())).toEqual({});
  });
});

it.each([
  ['before', ['lb'], '1 hook to be cleared before it is drained or rebooted: lb'],
  ['after', ['a', 'b'], '2 hooks to be cleared before it is schedulable again: a, b'],
] as const)('what is said of hooks %s', (phase, pending, text) => {
  expect(formatHooks({ phase, since: Date.parse(SINCE), pending })).toBe(
    `has been waiting since ${SINCE} for ${text}`,
  );
});
