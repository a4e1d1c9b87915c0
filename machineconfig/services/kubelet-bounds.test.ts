import { expect, test } from 'vitest';
import { validateKubeletFields } from './kubelet-rules.ts';

/** What a field by itself should be; what it should be beside others is tested with the rules. */
function expectedOf(name: string, value: number): string | undefined {
  const problem = validateKubeletFields({ [name]: value }).find(
    ({ path, reason, expected }) =>
      path === `spec.kubeletConfig.${name}` && reason === `is ${value}` && expected.startsWith('an integer'),
  );
  return problem?.expected;
}

const BEYOND = Number.MAX_SAFE_INTEGER;

/** ValidateKubeletConfiguration in pkg/kubelet/apis/config/validation of Kubernetes, and the ports of a host. */
test.each<[string, min: number, max?: number]>([
  ['nodeLeaseDurationSeconds', 1],
  ['eventBurst', 0],
  ['eventRecordQPS', 0],
  ['evictionMaxPodGracePeriod', -1],
  ['healthzPort', 0, 65_535],
  ['port', 1, 65_535],
  ['readOnlyPort', 0, 65_535],
  ['imageGCHighThresholdPercent', 0, 100],
  ['imageGCLowThresholdPercent', 0, 100],
  ['iptablesDropBit', 0, 31],
  ['iptablesMasqueradeBit', 0, 31],
  ['kubeAPIBurst', 0],
  ['kubeAPIQPS', 0],
  ['nodeStatusMaxImages', -1],
  ['maxOpenFiles', 0],
  ['maxPods', 0],
  ['oomScoreAdj', -1000, 1000],
  ['podPidsLimit', -1],
  ['podsPerCore', 0],
  ['registryBurst', 0],
  ['registryPullQPS', 0],
  ['maxParallelImagePulls', 1],
  ['containerLogMaxWorkers', 1],
  ['containerLogMaxFiles', 2],
])('%s begins at %i and ends at %i, both included', (name, min, max) => {
  const expected = max === undefined ? `an integer of at least ${min}` : `an integer from ${min} to ${max}`;
  expect(expectedOf(name, min)).toBeUndefined();
  expect(expectedOf(name, min - 1)).toBe(expected);
  if (max === undefined) return;
  expect(expectedOf(name, max)).toBeUndefined();
  expect(expectedOf(name, max + 1)).toBe(expected);
});

test.each<[string, least: string, below: string, most?: string, above?: string]>([
  ['cpuCFSQuotaPeriod', '1ms', '999us', '1s', '1001ms'],
  ['containerLogMonitorInterval', '3s', '2999ms'],
  ['syncFrequency', '0s', '-1ms'],
])('%s takes %s, and not %s', (name, least, below, most, above) => {
  const problems = (value: string) => validateKubeletFields({ [name]: value }).map(({ path }) => path);
  expect(problems(least)).toEqual([]);
  expect(problems(below)).toEqual([`spec.kubeletConfig.${name}`]);
  if (most === undefined || above === undefined) return;
  expect(problems(most)).toEqual([]);
  expect(problems(above)).toEqual([`spec.kubeletConfig.${name}`]);
});

test.each<[Record<string, unknown>, ok: boolean]>([
  [{ crashLoopBackOff: { maxContainerRestartPeriod: '1s' } }, true],
  [{ crashLoopBackOff: { maxContainerRestartPeriod: '999ms' } }, false],
  [{ crashLoopBackOff: { maxContainerRestartPeriod: '300s' } }, true],
  [{ crashLoopBackOff: { maxContainerRestartPeriod: '300001ms' } }, false],
  [{ crashLoopBackOff: { maxContainerRestartPeriod: 'often' } }, false],
  [{ shutdownGracePeriod: '1s' }, true],
  [{ shutdownGracePeriod: '999ms' }, false],
  [{ tracing: { samplingRatePerMillion: 0 } }, true],
  [{ tracing: { samplingRatePerMillion: 1_000_000 } }, true],
  [{ tracing: { samplingRatePerMillion: -1 } }, false],
  [{ userNamespaces: { idsPerPod: 2 ** 32 } }, true],
  [{ userNamespaces: { idsPerPod: 2 ** 32 + 65_536 } }, false],
  [{ userNamespaces: { idsPerPod: 0 } }, false],
  [{ memoryThrottlingFactor: 1 }, true],
  [{ memoryThrottlingFactor: 0.000_1 }, true],
  [{ eventBurst: 2 ** 31 - 1 }, true],
  [{ eventBurst: 2 ** 31 }, false],
  [{ tlsCurvePreferences: [2 ** 31] }, false],
  [{ podPidsLimit: BEYOND }, true],
  [{ podPidsLimit: BEYOND + 1 }, false],
])('%j is at a bound: %s', (fields, ok) => {
  expect(validateKubeletFields(fields).length === 0).toBe(ok);
});

test.each<[Record<string, unknown>, reason: string, expected: string]>([
  [{ maxPods: '250' }, 'is "250"', 'an integer of 32 bits'],
  [{ maxPods: ['250'] }, 'is a list', 'an integer of 32 bits'],
  [{ maxPods: { a: 1 } }, 'is an object', 'an integer of 32 bits'],
  [{ maxPods: 2.5 }, 'is 2.5', 'an integer of 32 bits'],
  [{ maxPods: null }, 'has a null', 'an integer of 32 bits, without null'],
  [{ featureOfTomorrow: { a: [null] } }, 'has a null', 'no null: leave the field out, without null'],
  [{ kubeletCgroups: 5 }, 'is 5', 'a string'],
  [{ evictionHard: [] }, 'is a list', 'strings by name'],
])('%j is of the wrong type: %s', (fields, reason, expected) => {
  expect(validateKubeletFields(fields)).toEqual([expect.objectContaining({ reason, expected })]);
});

test('every relation between fields is told, not only the first', () => {
  const problems = validateKubeletFields({
    shutdownGracePeriodByPodPriority: [{ priority: 1 }],
    shutdownGracePeriodCriticalPods: '1s',
  });
  expect(problems.map(({ path }) => path)).toEqual([
    'spec.kubeletConfig.shutdownGracePeriodCriticalPods',
    'spec.kubeletConfig.shutdownGracePeriodByPodPriority',
  ]);
});
