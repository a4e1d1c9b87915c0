import { expect, test } from 'vitest';
import { type Digest, parseDigestedPullspec } from '../../api/references.ts';
import { type ImageIdentity, labelsOf, sourceOf } from './build-facts.ts';

const digest = (letter: string) => `sha256:${letter.repeat(64)}` as Digest;
const identity: ImageIdentity = {
  pool: 'worker',
  renderedConfig: 'rendered-worker-1',
  requestedBase: 'r.example.com:5000/os/stock:41',
  baseImage: parseDigestedPullspec(`r.example.com:5000/os/stock@${digest('b')}`),
  policyDigest: digest('d'),
  disruption: '{}',
  version: '0.1.0',
  created: '1970-01-01T00:00:00Z',
  source: {},
};

test('an image says by standard labels what it stands on and when it was made', () => {
  expect(labelsOf(identity)).toMatchObject({
    'org.opencontainers.image.title': 'worker nodes',
    'org.opencontainers.image.version': 'rendered-worker-1',
    'org.opencontainers.image.created': '1970-01-01T00:00:00Z',
    'org.opencontainers.image.base.name': 'r.example.com:5000/os/stock:41',
    'org.opencontainers.image.base.digest': digest('b'),
    'dev.shale.version': '0.1.0',
  });
});

test.each([
  [`r.example.com:5000/os/stock@${digest('b')}`, 'r.example.com:5000/os/stock'],
  [`r.example.com:5000/os/stock:41@${digest('b')}`, 'r.example.com:5000/os/stock:41'],
])('the base %s has the name %s', (requestedBase, name) => {
  expect(labelsOf({ ...identity, requestedBase })['org.opencontainers.image.base.name']).toBe(name);
});

test('where the configuration comes from is told only when it is known', () => {
  expect(Object.keys(labelsOf(identity))).not.toContain('org.opencontainers.image.revision');
  const source = { url: 'https://git.example.com/nodes', revision: 'abc' };
  expect(labelsOf({ ...identity, source })).toMatchObject({
    'org.opencontainers.image.source': 'https://git.example.com/nodes',
    'org.opencontainers.image.revision': 'abc',
  });
});

import type { MachineConfigPool } from '../../api/machine-config-pool.ts';

const pool = (annotations: Record<string, string>) =>
  ({ metadata: { name: 'worker', annotations } }) as unknown as MachineConfigPool;

test.each<[string, Record<string, string>, object]>([
  ['nothing', {}, {}],
  [
    'a repository and a commit',
    { 'shale.dev/source-url': 'https://git.example.com/nodes', 'shale.dev/source-revision': 'abc' },
    { url: 'https://git.example.com/nodes', revision: 'abc' },
  ],
  [
    'credentials in the URL',
    { 'shale.dev/source-url': 'https://robot:token@git.example.com/nodes' },
    { url: 'https://git.example.com/nodes' },
  ],
  ['an empty one', { 'shale.dev/source-revision': '' }, {}],
  ['line breaks', { 'shale.dev/source-revision': 'a\nb' }, {}],
  ['a text of any length', { 'shale.dev/source-revision': 'a'.repeat(513) }, {}],
])('of %s', (_name, annotations, expected) => {
  expect(sourceOf(pool(annotations))).toEqual(expected);
});

test('a pool that is gone has none', () => {
  expect(sourceOf(undefined)).toEqual({});
});
