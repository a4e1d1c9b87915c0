import { expect, test } from 'vitest';
import { z } from 'zod';
import { type Digest, parseDigestedPullspec } from '../../api/references.ts';
import type { BuildFacts } from '../layer/build-facts.ts';
import { slsaStatement } from './slsa-statement.ts';

const digest = (letter: string) => `sha256:${letter.repeat(64)}` as Digest;
const facts: BuildFacts = {
  image: parseDigestedPullspec(`r.example.com:5000/os/worker@${digest('a')}`),
  pool: 'worker',
  renderedConfig: 'rendered-worker-1',
  renderedConfigDigest: digest('c'),
  requestedBase: 'r.example.com:5000/os/stock:1',
  baseImage: parseDigestedPullspec(`r.example.com:5000/os/stock@${digest('b')}`),
  policyDigest: digest('d'),
  architecture: 'amd64',
  pushSpec: 'r.example.com:5000/os/worker:build-1',
  created: '1970-01-01T00:00:00Z',
  version: '0.1.0',
  source: {},
};

const DigestSet = z.record(z.string(), z.string().regex(/^[0-9a-f]{40,64}$/));
/** in-toto attestation framework, spec/v1/resource_descriptor.md: one of uri, digest and content has to be there. */
const ResourceDescriptor = z
  .strictObject({
    name: z.string().optional(),
    uri: z.string().optional(),
    digest: DigestSet.optional(),
    annotations: z.record(z.string(), z.unknown()).optional(),
  })
  .refine(({ uri, digest: of }) => uri !== undefined || of !== undefined);
/** in-toto attestation framework, spec/v1/statement.md, with the predicate of https://slsa.dev/spec/v1.0/provenance. */
const Statement = z.strictObject({
  _type: z.literal('https://in-toto.io/Statement/v1'),
  subject: z.array(z.strictObject({ name: z.string(), digest: DigestSet })).min(1),
  predicateType: z.literal('https://slsa.dev/provenance/v1'),
  predicate: z.strictObject({
    buildDefinition: z.strictObject({
      buildType: z.url(),
      externalParameters: z.record(z.string(), z.unknown()),
      internalParameters: z.record(z.string(), z.unknown()),
      resolvedDependencies: z.array(ResourceDescriptor),
    }),
    runDetails: z.strictObject({
      builder: z.strictObject({ id: z.url(), version: z.record(z.string(), z.string()) }),
    }),
  }),
});

const statementOf = (given: BuildFacts) => Statement.parse(JSON.parse(slsaStatement(given)));

test('is an in-toto statement about the image, with what it was made of by digest', () => {
  const { subject, predicate } = statementOf(facts);
  expect(subject).toEqual([{ name: 'r.example.com:5000/os/worker', digest: { sha256: 'a'.repeat(64) } }]);
  expect(predicate.buildDefinition.externalParameters).toEqual({
    pool: 'worker',
    renderedConfig: 'rendered-worker-1',
    baseImage: 'r.example.com:5000/os/stock:1',
    renderedImagePushSpec: 'r.example.com:5000/os/worker:build-1',
  });
  const dependencies = predicate.buildDefinition.resolvedDependencies;
  expect(dependencies.map(({ name, digest: of }) => [name, of?.['sha256']?.[0]])).toEqual([
    ['base image', 'b'],
    ['rendered config', 'c'],
    ['disruption policies', 'd'],
  ]);
});

test.each<[string, BuildFacts['source'], object]>([
  [
    'a commit',
    { url: 'https://git.example.com/nodes', revision: '0123456789'.repeat(4) },
    { uri: 'https://git.example.com/nodes', digest: { gitCommit: '0123456789'.repeat(4) } },
  ],
  [
    'a tag',
    { url: 'https://git.example.com/nodes', revision: 'v1' },
    { uri: 'https://git.example.com/nodes', annotations: { revision: 'v1' } },
  ],
  [
    'a commit of an unknown repository',
    { revision: '0123456789abcdef'.repeat(4) },
    { digest: { gitCommit: '0123456789abcdef'.repeat(4) } },
  ],
  [
    'a repository without a commit',
    { url: 'https://git.example.com/nodes' },
    { uri: 'https://git.example.com/nodes' },
  ],
  [
    'a part of a commit',
    { url: 'https://git.example.com/nodes', revision: '0123456' },
    { uri: 'https://git.example.com/nodes', annotations: { revision: '0123456' } },
  ],
])('%s is the source, in the form that fits it', (_name, source, expected) => {
  const dependencies = statementOf({ ...facts, source }).predicate.buildDefinition.resolvedDependencies;
  expect(dependencies.at(-1)).toEqual({ name: 'source', ...expected });
});

test('the same facts in another order are the same bytes', () => {
  const reversed = Object.fromEntries(Object.entries(facts).reverse()) as unknown as BuildFacts;
  expect(slsaStatement(reversed)).toBe(slsaStatement(facts));
});
