import { describe, expect, it } from 'vitest';
import type { MachineConfig } from '../api/machine-config.ts';
import { annotations } from '../api/names.ts';
import {
  decideTry,
  isSameConfig,
  type TryTerms,
  triedConfig,
  tryOf,
  withSettledTry,
} from './tried-config.ts';

const UNTIL = Date.parse('2026-06-01T00:10:00Z');
const TERMS: TryTerms = {
  id: 'a',
  by: 'alice',
  at: '2026-06-01T00:00:00Z',
  until: new Date(UNTIL).toISOString(),
};
const ROLE = { 'machineconfiguration.openshift.io/role': 'worker' };

function config(kernelArguments: string[], metadata: Partial<MachineConfig['metadata']> = {}): MachineConfig {
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name: '99-a', labels: ROLE, ...metadata },
    spec: { kernelArguments },
  };
}

const BEFORE = config(['a'], {
  uid: 'u',
  generation: 3,
  resourceVersion: '7',
  annotations: { owner: 'storage', 'kubectl.kubernetes.io/last-applied-configuration': '{}' },
});

/** As the API server has it after the write. */
function written(before: MachineConfig | undefined, wanted = config(['b'])): MachineConfig {
  const tried = triedConfig(before, wanted, TERMS);
  const generation = before === undefined ? 1 : (before.metadata.generation ?? 1) + 1;
  return { ...tried, metadata: { ...tried.metadata, uid: 'u', resourceVersion: '8', generation } };
}

describe('a change that is tried', () => {
  it('has the new labels and spec, and keeps the annotations', () => {
    const tried = written(BEFORE, config(['b'], { labels: { x: 'y' }, annotations: { owner: 'net' } }));
    expect(tried.spec).toEqual({ kernelArguments: ['b'] });
    expect(tried.metadata.labels).toEqual({ x: 'y' });
    expect(tried.metadata.annotations).toMatchObject({
      ...BEFORE.metadata.annotations,
      owner: 'net',
    });
    expect(triedConfig(BEFORE, config(['b']), TERMS).metadata.resourceVersion).toBe('7');
    expect(tryOf(tried)).toMatchObject({ ...TERMS, generation: 4 });
  });

  it('is refused where what was before fits in no annotation', () => {
    // Nothing that could be compressed.
    const noise = Array.from({ length: 40_000 }, (_, index) => String(Math.sin(index)));
    expect(() => triedConfig(config(noise, { generation: 1 }), config(['b']), TERMS)).toThrow(
      /^MachineConfig 99-a: what it was before has \d+ KiB, which is too much/,
    );
  });
});

describe('until its end', () => {
  it('waits', () => {
    expect(decideTry(written(BEFORE), UNTIL - 1)).toMatchObject({ kind: 'waits', until: UNTIL });
  });

  it.each([config(['a']), config(['a'], { annotations: { [annotations.rollback]: 'x' } })])(
    'a MachineConfig without the annotation is left alone',
    (other) => expect(decideTry(other, UNTIL)).toEqual({ kind: 'none' }),
  );
});

describe('at its end', () => {
  it('is restored exactly, in the version that was looked at', () => {
    const decision = decideTry(written(BEFORE), UNTIL);
    expect(decision).toMatchObject({ kind: 'restore', request: { by: 'alice' } });
    const metadata = { ...BEFORE.metadata, resourceVersion: '8', generation: 4 };
    expect(decision).toHaveProperty('to', { ...BEFORE, metadata });
  });

  it('is restored without labels and annotations, and with fields that no schema knows', () => {
    const { labels: _, ...bare } = config(['a'], { generation: 1 }).metadata;
    const spec = { kernelArguments: null, config: { later: { field: [1, null, 'ä'] } } };
    const before: MachineConfig = { ...config([]), metadata: bare, spec };
    const decision = decideTry(written(before), UNTIL);
    const metadata = { ...bare, uid: 'u', resourceVersion: '8', generation: 2 };
    expect(decision).toHaveProperty('to', { ...before, metadata });
  });

  it('is deleted if there was none before', () => {
    expect(decideTry(written(undefined), UNTIL)).toMatchObject({ kind: 'delete' });
  });

  it.each<[string, Partial<MachineConfig['metadata']>, string]>([
    ['the spec', { generation: 5 }, 'its spec'],
    ['a label', { labels: { ...ROLE, more: '' } }, 'its labels or annotations'],
    ['no label', { labels: {} }, 'its labels or annotations'],
  ])('is kept if somebody edited %s', (_what, edit, why) => {
    const tried = written(BEFORE);
    const edited = { ...tried, metadata: { ...tried.metadata, ...edit } };
    expect(decideTry(edited, UNTIL)).toMatchObject({ kind: 'edited', why });
    expect(decideTry(edited, UNTIL - 1)).toMatchObject({ kind: 'waits' });
  });

  it('is kept if somebody edited an annotation', () => {
    const tried = written(BEFORE);
    const metadata = { ...tried.metadata, annotations: { ...tried.metadata.annotations, owner: 'me' } };
    expect(decideTry({ ...tried, metadata }, UNTIL)).toMatchObject({ kind: 'edited' });
  });

  it.each(['', '{', '{"id":"a"}', 'null'])('is left as it is by the annotation %j', (text) => {
    const broken = config(['b'], { annotations: { [annotations.try]: text } });
    expect(decideTry(broken, UNTIL)).toMatchObject({
      kind: 'unreadable',
      why: expect.not.stringMatching(/\n/),
    });
  });

  it.each(['AAAA', Buffer.from('no gzip').toString('base64')])(
    'is left as it is if what was before is %s',
    (before) => {
      const tried = written(BEFORE);
      const text = JSON.stringify({ ...tryOf(tried), before });
      const metadata = {
        ...tried.metadata,
        annotations: { ...tried.metadata.annotations, [annotations.try]: text },
      };
      expect(decideTry({ ...tried, metadata }, UNTIL)).toMatchObject({ kind: 'unreadable' });
    },
  );
});

describe('what the API server made of it', () => {
  it('is what was written', () => expect(withSettledTry(written(BEFORE))).toBeUndefined());

  it('is recorded where a webhook has added a label or defaults', () => {
    const tried = written(BEFORE);
    const mutated = {
      ...tried,
      metadata: { ...tried.metadata, generation: 9, labels: { ...ROLE, team: 'a' } },
    };
    const settled = withSettledTry(mutated) ?? mutated;
    expect(decideTry(settled, UNTIL)).toMatchObject({ kind: 'restore' });
  });
});

it.each([
  [config(['a']), true],
  [config(['b']), false],
  [config(['a'], { labels: {} }), false],
  [config(['a'], { annotations: { more: 'x' } }), true],
])('annotations make no difference', (wanted, same) => expect(isSameConfig(BEFORE, wanted)).toBe(same));
