import { expect, test } from 'vitest';
import { kindsFor } from '../campaign.ts';
import { Random } from '../world/random.ts';
import { type Cast, drawFault } from './fault.ts';

const CAST: Cast = {
  machines: ['worker-0', 'worker-1'],
  scripted: ['scripted-000', 'scripted-001'],
  pools: ['worker', 'infra'],
  longestMs: 5_000,
  longestPauseMs: 5_000,
};

const KINDS = kindsFor(CAST);

function draw(seed: number, count: number): readonly string[] {
  const random = new Random(seed);
  return Array.from({ length: count }, () => {
    const { kind, subject, details = '', lastsMs = 0 } = drawFault(KINDS, random, CAST);
    return `${kind} ${subject} ${details} ${lastsMs}`;
  });
}

test('a seed draws the same faults again, and another seed draws others', () => {
  expect(draw(7, 50)).toEqual(draw(7, 50));
  expect(draw(7, 50)).not.toEqual(draw(8, 50));
});

test('every kind of fault is drawn', () => {
  const kinds = new Set(KINDS.map((kind) => kind.draw(new Random(1), CAST).kind));
  expect(kinds.size).toBe(KINDS.length);
  const words = draw(1, 2_000).join('\n');
  for (const kind of [
    'kill',
    'pause',
    'API cut',
    'watches 410',
    'registry other byte',
    'power cut',
    'full disk',
    'switch flipped',
    'Node of a machine deleted',
    'Node deleted',
    'node leaves',
    'lease taken',
    'node tainted',
    'karpenter.sh/disrupted',
    'NodeMaintenance',
    'NodeMaintenance of KubeVirt',
    'flagged for maintenance',
    'powered off',
    'Machine deleted',
    'Node being deleted',
    'drained by others',
  ])
    expect(words).toContain(kind);
});

test('faults of scripted nodes are chosen only in campaigns that have such nodes', () => {
  const scripted = ['Node deleted', 'node leaves', 'node not Ready', 'daemon hangs'];
  const kinds = (cast: Cast) => kindsFor(cast).map((kind) => kind.draw(new Random(1), cast).kind);
  expect(kinds(CAST)).toEqual(expect.arrayContaining(scripted));
  expect(kinds({ ...CAST, scripted: [] })).not.toEqual(expect.arrayContaining([expect.toBeOneOf(scripted)]));
});
