import { expect, test } from 'vitest';
import { aPool } from '../../test/fixtures/objects.ts';
import { formatObjectProblem, offlineCluster } from './offline-cluster.ts';
import { problemsOf, warningsOf } from './offline-problems.ts';

/** @returns what `shale validate` reports of a pool. */
function reports(spec: object, annotations: Readonly<Record<string, string>> = {}) {
  const pool = aPool('worker', spec);
  const cluster = offlineCluster([{ ...pool, metadata: { ...pool.metadata, annotations } }]);
  return { problems: problemsOf(cluster).map(formatObjectProblem), warnings: warningsOf(cluster) };
}

test.each<[string, object, Readonly<Record<string, string>>, RegExp]>([
  ['a misspelt annotation', {}, { 'shale.dev/wave': '[]' }, /annotation shale\.dev\/wave is unknown/],
  [
    'an annotation that has a field',
    {},
    { 'shale.dev/waves': '[{"nodes": 1, "bake": "1h"}]' },
    /annotation shale\.dev\/waves is read for one more/,
  ],
  [
    'a limit that is no percentage',
    { maxUnavailable: 'abc' },
    {},
    /spec\.maxUnavailable "abc" can't be read/,
  ],
  [
    'a time zone that does not exist',
    { shale: { maintenanceWindows: [{ schedule: '0 1 * * *', duration: '1h', timeZone: 'Mars' }] } },
    {},
    /spec\.shale\.maintenanceWindows can't be read, so no window opens/,
  ],
  ['a misspelt field', { shale: { wave: [] } }, {}, /spec\.shale\.wave: is not a field that Shale knows/],
])('%s of a pool is a warning', (_what, spec, annotations, warning) => {
  expect(reports(spec, annotations)).toEqual({
    problems: [],
    warnings: [expect.stringMatching(new RegExp(`^MachineConfigPool worker: ${warning.source}`))],
  });
});

test('what the schema refuses is a problem', () => {
  expect(reports({ shale: { soak: 'soon', waves: [{ nodes: 1, bake: '1h' }] } }).problems).toEqual([
    'MachineConfigPool worker: spec.shale.soak: is "soon"; expected a duration in hours, minutes and seconds such as "30m" or "1h30m"',
  ]);
});
