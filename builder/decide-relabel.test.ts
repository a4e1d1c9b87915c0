import { describe, expect, test } from 'vitest';
import type { MachineOSBuild } from '../api/machine-os-build.ts';
import { annotations } from '../api/names.ts';
import {
  aBuild,
  aMachineOSConfig,
  aPool,
  aRenderedConfig,
  aSuccess,
  condition,
  image,
} from '../test/fixtures/objects.ts';
import { decideRelabel, type RelabelObservation } from './decide-relabel.ts';

const HELD = 'rendered-worker-1';
const BASE = 'stock.test/os@sha256:0';

function build(
  name: string,
  {
    config = HELD,
    relabels = '',
    ...more
  }: Parameters<typeof aBuild>[2] & { config?: string; relabels?: string },
): MachineOSBuild {
  const made = aBuild(name, config, { policyDigest: 'sha256:p', ...more });
  const metadata = relabels === '' ? {} : { annotations: { [annotations.relabels]: relabels } };
  return { ...made, metadata: { ...made.metadata, ...metadata }, spec: { ...made.spec, baseImage: BASE } };
}

const heldAt = (request: unknown) => {
  const pool = aPool('worker', { configuration: { name: 'rendered-worker-2' } });
  const text = typeof request === 'string' ? request : JSON.stringify(request);
  return { ...pool, metadata: { ...pool.metadata, annotations: { [annotations.rollback]: text } } };
};
const first = build('worker-first', { status: aSuccess('1') });
const other = build('worker-other', { config: 'rendered-worker-2', status: aSuccess('2') });
const states = [{ config: 'rendered-worker-2', base: 'base' }];
const seen: RelabelObservation = {
  machineOSConfig: aMachineOSConfig('worker'),
  pool: heldAt({ config: HELD, image: image('1') }),
  policyDigest: 'sha256:p',
  ownArchitecture: 'amd64',
  builds: [first, other],
  hasEngine: false,
  running: new Set(),
  states,
  fallsShort: (each) => each === first,
  isDistrusted: () => false,
  configs: (name) => aRenderedConfig(name),
};

describe('an image that a rollback holds a pool at', () => {
  test('is signed again where nodes no longer accept the key that signed it', () => {
    const signed = { ...first, status: { ...first.status, signingKey: 'a.pub' } };
    const held = { ...seen, builds: [signed, other], fallsShort: () => false };
    expect(decideRelabel(held)).toBeUndefined();
    const again = decideRelabel({ ...held, isDistrusted: ({ status }) => status?.signingKey === 'a.pub' });
    expect(again).toMatchObject({ next: 'create', relabels: 'worker-first', sameAs: signed });
    expect(again?.name).not.toBe(decideRelabel(seen)?.name);
  });

  test('has the same name by whichever key it was signed that nodes accept', () => {
    const signed = { ...first, status: { ...first.status, signingKey: 'a.pub' } };
    const held = decideRelabel({ ...seen, builds: [signed, other], fallsShort: (each) => each === signed });
    expect(held?.name).toBe(decideRelabel(seen)?.name);
  });

  test('is labelled again for what nodes run where its label falls short', () => {
    expect(decideRelabel(seen)).toMatchObject({
      name: expect.stringMatching(/^worker-[0-9a-f]{32}$/),
      renderedConfig: HELD,
      baseImage: BASE,
      policyDigest: 'sha256:p',
      architectures: ['amd64'],
      transitionsFrom: states,
      relabels: 'worker-first',
      next: 'create',
      sameAs: first,
    });
  });

  test('is the newest of the config where the request names none', () => {
    const newest = build('worker-a', { at: '2026-03-01T00:00:00Z', status: aSuccess('3') });
    const builds = [newest, first, other];
    const pool = heldAt({ config: HELD });
    expect(decideRelabel({ ...seen, pool, builds, fallsShort: () => true })?.sameAs).toBe(newest);
  });

  test('is labelled again as what its first build made, if it is another label of it', () => {
    const second = build('worker-second', { relabels: 'worker-gone', status: aSuccess('3', 'Relabel') });
    const pool = heldAt({ config: HELD, image: image('3') });
    const decided = decideRelabel({ ...seen, pool, builds: [second], fallsShort: () => true });
    expect(decided).toMatchObject({ relabels: 'worker-gone', sameAs: second });
  });

  test.each([
    ['does not exist', undefined, 'create'],
    ['has not started', {}, 'start'],
    ['was interrupted', { conditions: [condition('Interrupted')] }, 'recreate'],
    ['failed', { conditions: [condition('Failed')] }, 'none'],
  ])('whose next build %s', (_what, status, next) => {
    const { name = '' } = decideRelabel(seen) ?? {};
    const again = status === undefined ? [] : [build(name, { relabels: 'worker-first', status })];
    const decided = decideRelabel({ ...seen, builds: [first, other, ...again] });
    expect(decided).toMatchObject({ name, next });
  });

  test('for several architectures is labelled again for those that it has', () => {
    const instance = (architecture: string) => ({ architecture, image: image('a'), baseImage: BASE });
    const status = { ...aSuccess('1'), instances: [instance('amd64'), instance('arm64')] };
    const index = build('worker-index', { status });
    expect(decideRelabel({ ...seen, builds: [index], fallsShort: () => true })).toMatchObject({
      architectures: ['amd64', 'arm64'],
    });
  });

  test.each<[string, Partial<RelabelObservation>]>([
    ['its label suffices', { fallsShort: () => false }],
    [
      'another of its labels suffices',
      {
        builds: [
          first,
          build('worker-again', { relabels: 'worker-first', status: aSuccess('3', 'Relabel') }),
        ],
      },
    ],
    ['no rollback holds the pool', { pool: aPool('worker') }],
    ['the request can not be read', { pool: heldAt('{') }],
    ['no build has the image', { pool: heldAt({ config: HELD, image: image('9') }) }],
    ['the image is of another config', { pool: heldAt({ config: HELD, image: image('2') }) }],
    ['the rendered config is gone', { configs: () => undefined }],
    ['the policies in force are not recorded yet', { policyDigest: undefined }],
    [
      'the pool has nodes of an architecture that it is not for',
      {
        pool: {
          ...heldAt({ config: HELD, image: image('1') }),
          status: { architectures: ['amd64', 'arm64'] },
        },
      },
    ],
  ])('is left as it is where %s', (_what, more) => {
    expect(decideRelabel({ ...seen, ...more })).toBeUndefined();
  });

  test('gets no label of an image on another base', () => {
    const rebased = build('worker-again', {
      relabels: 'worker-first',
      status: aSuccess('3', 'Relabel', 'other-base'),
    });
    expect(decideRelabel({ ...seen, builds: [first, rebased] })).toMatchObject({ next: 'create' });
  });
});
