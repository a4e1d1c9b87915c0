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
  expect(streamOf(pool(name), streams, undefined)).toMatchObject(expected);
});

test('what is wrong names the pool, the ConfigMap and what it has', () => {
  expect(streamProblem(pool('next'), { next: 'os:latest' }, undefined)).toEqual({
    machineConfig: '',
    problems: [
      {
        path: 'pool/worker: spec.osImageStream.name',
        reason: 'the ConfigMap os-image-streams has "os:latest" for "next"',
        expected: 'an image by digest: host[:port]/repository@sha256:<64 hexadecimal digits>',
      },
    ],
  });
  expect(streamProblem(pool(), undefined, undefined)).toBeUndefined();
});

test('what the ConfigMap has is repeated as far as a condition has room', () => {
  const { problems } = streamProblem(pool('next'), { next: `os:${'x'.repeat(10_000)}` }, undefined) ?? {};
  expect(problems?.[0]?.reason).toMatch(/has "os:x{50,200}" for "next"$/);
});

const poolNamed = (name: string, stream?: string) => ({
  metadata: { name },
  spec: stream === undefined ? {} : { osImageStream: { name: stream } },
});

test.each<[string, string | undefined, string | undefined, object]>([
  ['infra', undefined, 'next', { kind: 'found', name: 'next', isInherited: true }],
  ['infra', 'own', 'next', { kind: 'found', name: 'own', isInherited: false }],
  ['infra', undefined, undefined, { kind: 'none' }],
  ['master', undefined, 'next', { kind: 'none' }],
  ['arbiter', undefined, 'next', { kind: 'none' }],
  ['worker', 'next', 'next', { kind: 'found', name: 'next', isInherited: false }],
])('pool %s with stream %s and worker with %s', (name, own, ofWorker, expected) => {
  const streams = { own: IMAGE, next: IMAGE };
  expect(streamOf(poolNamed(name, own), streams, poolNamed('worker', ofWorker))).toMatchObject(expected);
});

test('a custom pool without a worker pool has no stream', () => {
  expect(streamOf(poolNamed('infra'), { next: IMAGE }, undefined)).toEqual({ kind: 'none' });
});

test('what is wrong with an inherited stream names the pool that names it, and the one that inherits it', () => {
  expect(streamProblem(poolNamed('infra'), { other: IMAGE }, poolNamed('worker', 'next'))).toEqual({
    machineConfig: '',
    problems: [
      {
        path: 'pool/worker: spec.osImageStream.name',
        reason: '"next", which pool infra inherits, is not a key of the ConfigMap os-image-streams',
        expected: 'other',
      },
    ],
  });
});
