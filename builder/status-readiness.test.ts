import { expect, test } from 'vitest';
import { parseDigestedPullspec } from '../api/references.ts';
import { setReadiness } from '../cluster/readiness.ts';
import { kstatus } from '../test/fixtures/kstatus.ts';
import { image } from '../test/fixtures/objects.ts';
import { type BuildPhase, buildStatus, waitingReadiness } from './status.ts';

const NOW = '2026-06-01T00:00:00Z';
const built = parseDigestedPullspec(image('1'));
const started: BuildPhase = { kind: 'started' };

test.each<[string, readonly BuildPhase[], string]>([
  ['started', [started], 'InProgress'],
  [
    'tried again',
    [started, { kind: 'retrying', attempt: 1, reason: 'RegistryUnavailable', why: 'x', inMs: 1 }],
    'InProgress',
  ],
  [
    'succeeded',
    [
      started,
      {
        kind: 'succeeded',
        image: built,
        baseImage: built,
        way: 'Append',
        transitions: [],
        summary: 's',
        bytes: { sent: 0, mounted: 0 },
      },
    ],
    'Current',
  ],
  ['failed', [started, { kind: 'failed', reason: 'NoEngine', message: 'm' }], 'Failed'],
  ['interrupted', [started, { kind: 'interrupted', message: 'm' }], 'Failed'],
])('a build that is %s', (_what, phases, expected) => {
  const status = phases.reduce<ReturnType<typeof buildStatus> | undefined>(
    (before, phase) => buildStatus(before, phase, NOW, 1),
    undefined,
  );
  expect(kstatus({ metadata: { generation: 1 }, status })).toBe(expected);
  expect(status?.conditions?.every(({ observedGeneration }) => observedGeneration === 1)).toBe(true);
  // The schema's limit.
  expect(status?.conditions?.length).toBeLessThanOrEqual(8);
});

test.each([
  ['BaseImageMissing', 'Failed'],
  ['PoolMissing', 'Failed'],
  ['RepositoryTaken', 'Failed'],
  ['BaseImageUnknown', 'InProgress'],
  ['RenderedConfigMissing', 'InProgress'],
  ['PoliciesUnknown', 'InProgress'],
] as const)('a MachineOSConfig that waits because of %s', (reason, expected) => {
  const conditions = setReadiness([], waitingReadiness({ reason, why: 'w' }), 1, new Date(NOW));
  expect(kstatus({ metadata: { generation: 1 }, status: { conditions } })).toBe(expected);
});
