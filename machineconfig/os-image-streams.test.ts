import { expect, test } from 'vitest';
import { type OSImageStreams, streamOf, streamProblem } from './os-image-streams.ts';

const IMAGE = `registry.example.com/os@sha256:${'a'.repeat(64)}`;
const pool = (name?: string) => ({
  metadata: { name: 'worker' },
  spec: name === undefined ? {} : { osImageStream: { name } },
});

test.each<[string | undefined, OSImageStreams | undefined, object]>([
  [undefined, { next: IMAGE }, { kind: 'none' }],
  ['next', { next: IMAGE }, { kind: 'found', name: 'next', image: IMAGE }],
  ['next', { next: `${IMAGE}\n` }, { kind: 'found', image: IMAGE }],
  ['next', undefined, { kind: 'refused' }],
  ['next', {}, { kind: 'refused' }],
  ['constructor', { next: IMAGE }, { kind: 'refused' }],
  ['next', { b: IMAGE, a: IMAGE }, { kind: 'refused', problem: { expected: 'a, b' } }],
  ['next', { next: 'registry.example.com/os:9' }, { kind: 'refused' }],
  ['next', { next: '' }, { kind: 'refused' }],
])('stream %s among %j', (name, streams, expected) => {
  expect(streamOf(pool(name), streams)).toMatchObject(expected);
});

test('what is wrong names the pool, the ConfigMap and what it has', () => {
  expect(streamProblem(pool('next'), { next: 'os:latest' })).toEqual({
    machineConfig: '',
    problems: [
      {
        path: 'pool/worker: spec.osImageStream.name',
        reason: 'the ConfigMap os-image-streams has "os:latest" for "next"',
        expected: 'an image by digest: host[:port]/repository@sha256:<64 hexadecimal digits>',
      },
    ],
  });
  expect(streamProblem(pool(), undefined)).toBeUndefined();
});
