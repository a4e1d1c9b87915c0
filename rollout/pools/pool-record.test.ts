import { describe, expect, it } from 'vitest';
import type { PoolRevision } from '../../api/pool-revision.ts';
import { aBuild, aMachineConfigNode, aPool, aRecord, aSuccess, image } from '../../test/fixtures/objects.ts';
import {
  expiredOrphans,
  expiredRevisions,
  firstTargets,
  isRecorded,
  newRevisions,
  type RolledBackTo,
  recordedTarget,
  recordOf,
} from './pool-record.ts';

const pool = aPool('worker');
const one = { config: 'rendered-worker-1', image: image('1') };
const two = { config: 'rendered-worker-2', image: image('2') };

describe('the record of a pool', () => {
  it('has its own revisions, oldest first', () => {
    const [first, second] = aRecord(pool, one, two);
    const others = aRecord(aPool('infra'), one);
    const all = [second, ...others, first] as PoolRevision[];
    expect(recordOf(pool, all).map(recordedTarget)).toEqual([one, two]);
  });

  it('has a revision that somebody else owns as well', () => {
    const [first] = aRecord(pool, one) as [PoolRevision];
    const other = { apiVersion: 'v1', kind: 'ConfigMap', name: 'backup', uid: 'uid-backup' };
    const ownerReferences = [other, ...(first.metadata.ownerReferences ?? [])];
    const shared = { ...first, metadata: { ...first.metadata, ownerReferences } };
    expect(recordOf(pool, [shared])).toEqual([shared]);
    const foreign = { ...first, metadata: { ...first.metadata, ownerReferences: [other] } };
    expect(recordOf(pool, [foreign])).toEqual([]);
  });

  it('has none that is being deleted, and none of an earlier pool of the same name', () => {
    const [first] = aRecord(pool, one) as [PoolRevision];
    const deleted = { ...first, metadata: { ...first.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } };
    expect(recordOf(pool, [deleted])).toEqual([]);
    const again = { ...pool, metadata: { ...pool.metadata, uid: 'another' } };
    expect(recordOf(again, [first])).toEqual([]);
    expect(newRevisions(again, [], [{ target: one }])[0]?.metadata.name).not.toBe(first.metadata.name);
  });

  it.each([
    ['another image', { ...one, image: image('2') }],
    ['another config', { ...one, config: 'rendered-worker-2' }],
    ['standard mode', { config: one.config }],
    ['another stock image', { config: one.config, osImage: 'stock@sha256:0' }],
  ])('does not have what differs in %s', (_what, target) => {
    expect(isRecorded(aRecord(pool, one), target)).toBe(false);
    expect(isRecorded(aRecord(pool, target), target)).toBe(true);
  });
});

const proven = { baseImage: 'base', baseRecords: [], engineImages: [] };

describe('new revisions', () => {
  it('are numbered after the latest, say where the image comes from, and belong to the pool', () => {
    const build = aBuild('worker-b', two.config, { policyDigest: 'sha256:p', status: aSuccess('2') });
    expect(newRevisions(pool, aRecord(pool, one), [{ target: two, origin: { build, proven } }])).toEqual([
      {
        apiVersion: 'shale.dev/v1',
        kind: 'PoolRevision',
        metadata: {
          name: expect.stringMatching(/^worker-[0-9a-f]{16}$/),
          ownerReferences: [
            {
              apiVersion: 'machineconfiguration.openshift.io/v1',
              kind: 'MachineConfigPool',
              name: 'worker',
              uid: 'uid-worker',
              controller: true,
            },
          ],
        },
        spec: {
          machineConfigPool: { name: 'worker' },
          revision: 2,
          machineConfig: { name: two.config },
          image: two.image,
          machineOSBuild: { name: 'worker-b' },
          baseImage: 'base',
          policyDigest: 'sha256:p',
        },
      },
    ]);
  });

  it('are numbered after those that an earlier pool of the name left', () => {
    const left = aRecord({ ...pool, metadata: { ...pool.metadata, uid: 'earlier' } }, one, two);
    const others = aRecord(aPool('infra'), one, two, { config: 'rendered-infra-3' });
    const created = newRevisions(pool, [...left, ...others], [{ target: one }]);
    expect(created.map(({ spec }) => spec.revision)).toEqual([3]);
  });

  it('are created once for each target', () => {
    const created = newRevisions(pool, aRecord(pool, one), [
      { target: one },
      { target: two },
      { target: two },
    ]);
    expect(created.map(({ spec }) => [spec.revision, spec.image])).toEqual([[2, two.image]]);
  });
});

it('begins with what the operator assigned to nodes of the pool, not with what their statuses claim', () => {
  const evil = { mode: 'Layered', configImage: { currentImage: image('e') } } as const;
  const nodes = [
    aMachineConfigNode('a', {
      configVersion: { desired: two.config },
      configImage: { desiredImage: two.image },
    }),
    aMachineConfigNode('b', { configVersion: { desired: one.config }, osImage: 'stock' }, evil),
    aMachineConfigNode('c', { pool: { name: 'infra' } }),
    aMachineConfigNode('d', { configVersion: { desired: '' } }),
  ];
  expect(firstTargets('worker', nodes)).toEqual([
    { config: one.config, osImage: 'stock' },
    { config: two.config, image: two.image },
  ]);
});

it('keeps fifty revisions beyond those in use', () => {
  const targets = Array.from({ length: 60 }, (_, index) => ({ config: `rendered-worker-${index}` }));
  const record = aRecord(pool, ...targets);
  const used = targets.slice(0, 3);
  const expired = (rollsBackTo: readonly RolledBackTo[], of = record) =>
    expiredRevisions(of, () => ({ targets: used, rollsBackTo })).map(recordedTarget);
  expect(expired([])).toEqual(targets.slice(3, 10));
  expect(expired([], record.slice(0, 50))).toEqual([]);
  expect(expired([{ config: 'rendered-worker-4' }])).toEqual([targets[3], ...targets.slice(5, 10)]);
});

it('keeps fifty revisions of pools that are gone, the newest of all', () => {
  const earlier = { ...pool, metadata: { ...pool.metadata, uid: 'earlier' } };
  const revisions = [...aRecord(aPool('gone'), ...some(30)), ...aRecord(earlier, ...some(30))].map(
    (revision, index): PoolRevision => {
      const creationTimestamp = new Date(Date.UTC(2026, 0, 1 + index)).toISOString();
      return { ...revision, metadata: { ...revision.metadata, creationTimestamp } };
    },
  );
  const own = aRecord(pool, ...some(60));
  const all = [...own, ...revisions.toReversed()];
  expect(expiredOrphans(all, [pool, aPool('infra')])).toEqual(revisions.slice(0, 10));
  expect(expiredOrphans(all, [pool, earlier, aPool('gone')])).toEqual([]);
});

function some(count: number) {
  return Array.from({ length: count }, (_, index) => ({ config: `rendered-worker-${index}` }));
}

it('keeps the image that a rollback or its deadline names, and no other of its config', () => {
  const since = Array.from({ length: 50 }, (_, index) => ({ config: `rendered-worker-since-${index}` }));
  const relabelled = { config: one.config, image: image('3') };
  const record = aRecord(pool, one, relabelled, two, ...since);
  const expired = (rollsBackTo: RolledBackTo) =>
    expiredRevisions(record, () => ({ targets: [], rollsBackTo: [rollsBackTo] })).map(recordedTarget);
  expect(expired(one)).toEqual([relabelled, two]);
  expect(expired({ config: one.config })).toEqual([two]);
});
