import { expect, test } from 'vitest';
import { refusedOpenShiftSettings } from './openshift-settings.ts';
import { formatProblem } from './problem.ts';

const refused = (kind: string, spec: Record<string, unknown>, apiVersion = 'config.openshift.io/v1') =>
  refusedOpenShiftSettings({ apiVersion, kind, metadata: { name: 'cluster' }, spec }).map(formatProblem);

test.each<[string, Record<string, unknown>, readonly RegExp[]]>([
  ['Node', {}, []],
  ['Node', { workerLatencyProfile: '' }, []],
  ['Node', { workerLatencyProfile: 'Default' }, []],
  [
    'Node',
    { workerLatencyProfile: 'LowUpdateSlowReaction' },
    [/^Node cluster of config\.openshift\.io, spec\.workerLatencyProfile: is not supported.*KubeletConfig/],
  ],
  [
    'Node',
    { cgroupMode: 'v2', minimumKubeletVersion: '1.33.0' },
    [/spec\.cgroupMode: is not supported/, /spec\.minimumKubeletVersion: is not supported/],
  ],
  ['CRIOCredentialProviderConfig', {}, []],
  ['CRIOCredentialProviderConfig', { matchImages: [] }, []],
  [
    'CRIOCredentialProviderConfig',
    { matchImages: ['registry.example.com'] },
    [/^CRIOCredentialProviderConfig cluster of config\.openshift\.io, spec\.matchImages: is not supported/],
  ],
  ['Image', { workerLatencyProfile: 'Default' }, []],
])('%s %j', (kind, spec, expected) => {
  expect(refused(kind, spec)).toEqual(expected.map((each) => expect.stringMatching(each)));
});

test("core's Node has nothing of it", () => {
  expect(refused('Node', { workerLatencyProfile: 'LowUpdateSlowReaction' }, 'v1')).toEqual([]);
});
