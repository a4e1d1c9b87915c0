import { expect, test } from 'vitest';
import { validateKubeletFields } from './kubelet-rules.ts';

const paths = (fields: Record<string, unknown>) =>
  validateKubeletFields(fields).map(({ path }) => path.replace('spec.kubeletConfig.', ''));

test.each<Record<string, unknown>>([
  {},
  { maxPods: 500, podsPerCore: 0, podPidsLimit: -1 },
  { systemReserved: { cpu: '500m', memory: '1Gi', 'ephemeral-storage': '1Gi', pid: '1000' } },
  { evictionHard: { 'memory.available': '5%', 'nodefs.available': '1Gi', 'imagefs.inodesFree': '0%' } },
  { evictionSoft: { 'memory.available': '10%' }, evictionSoftGracePeriod: { 'memory.available': '1m30s' } },
  { imageGCHighThresholdPercent: 85, imageGCLowThresholdPercent: 80 },
  { imageGCHighThresholdPercent: 70 },
  { cpuManagerPolicy: 'static', cpuManagerReconcilePeriod: '5s', reservedSystemCPUs: '0-3,8' },
  { cpuCFSQuotaPeriod: '100ms', containerLogMonitorInterval: '3s', imageMaximumGCAge: '0s' },
  { containerLogMaxSize: '50Mi', containerLogMaxFiles: 2 },
  { serializeImagePulls: false, maxParallelImagePulls: 5 },
  { enforceNodeAllocatable: ['pods', 'system-reserved'], systemReservedCgroup: '/system.slice' },
  { enforceNodeAllocatable: ['none'], cgroupsPerQOS: false },
  { shutdownGracePeriod: '30s', shutdownGracePeriodCriticalPods: '10s' },
  { staticPodPath: '' },
  { crashLoopBackOff: { maxContainerRestartPeriod: '60s' } },
  { podLogsDir: '/var/log/pods' },
  { allowedUnsafeSysctls: ['kernel.msg*'], logging: { verbosity: 4 }, featureOfTomorrow: { a: [1] } },
])('the kubelet starts with %j', (fields) => {
  expect(validateKubeletFields(fields)).toEqual([]);
});

test.each<[Record<string, unknown>, ...string[]]>([
  // What the host's own file has to say.
  [{ cgroupDriver: 'systemd' }, 'cgroupDriver'],
  [{ clusterDNS: ['10.0.0.1'], clusterDomain: 'x' }, 'clusterDNS', 'clusterDomain'],
  [{ featureGates: { A: true } }, 'featureGates'],
  [{ failSwapOn: false }, 'failSwapOn'],
  [{ memorySwap: { swapBehavior: 'LimitedSwap' } }, 'memorySwap.swapBehavior'],
  [{ apiVersion: 'kubelet.config.k8s.io/v1', kind: 'X' }, 'apiVersion', 'kind'],
  [{ containerRuntimeEndpoint: 'unix:///x' }, 'containerRuntimeEndpoint'],
  [{ staticPodPath: '/etc/kubernetes/manifests' }, 'staticPodPath'],
  // Types.
  [{ maxPods: '250' }, 'maxPods'],
  [{ maxPods: 2.5 }, 'maxPods'],
  [{ maxPods: null }, 'maxPods'],
  [{ evictionHard: { 'memory.available': null } }, 'evictionHard'],
  [{ evictionHard: ['memory.available<1Gi'] }, 'evictionHard'],
  [{ syncFrequency: 10 }, 'syncFrequency'],
  [{ syncFrequency: '1 minute' }, 'syncFrequency'],
  [{ allowedUnsafeSysctls: 'kernel.msg*' }, 'allowedUnsafeSysctls'],
  [{ containerLogMaxSize: 52_428_800 }, 'containerLogMaxSize'],
  [{ serializeImagePulls: 'false' }, 'serializeImagePulls'],
  [{ featureOfTomorrow: null }, 'featureOfTomorrow'],
  // Ranges, each on both sides.
  [{ maxPods: -1 }, 'maxPods'],
  [{ port: 0 }, 'port'],
  [{ readOnlyPort: 65_536 }, 'readOnlyPort'],
  [{ imageGCHighThresholdPercent: 101 }, 'imageGCHighThresholdPercent'],
  [{ oomScoreAdj: -1001 }, 'oomScoreAdj'],
  [{ nodeLeaseDurationSeconds: 0 }, 'nodeLeaseDurationSeconds'],
  [{ nodeStatusMaxImages: -2 }, 'nodeStatusMaxImages'],
  [{ maxParallelImagePulls: 0 }, 'maxParallelImagePulls'],
  [{ containerLogMaxFiles: 1 }, 'containerLogMaxFiles'],
  [{ containerLogMaxWorkers: 0 }, 'containerLogMaxWorkers'],
  [{ cpuCFSQuotaPeriod: '2s' }, 'cpuCFSQuotaPeriod'],
  [{ cpuCFSQuotaPeriod: '1us' }, 'cpuCFSQuotaPeriod'],
  [{ containerLogMonitorInterval: '2s' }, 'containerLogMonitorInterval'],
  [{ imageMinimumGCAge: '-1s' }, 'imageMinimumGCAge'],
  [{ memoryThrottlingFactor: 0 }, 'memoryThrottlingFactor'],
  [{ memoryThrottlingFactor: 1.1 }, 'memoryThrottlingFactor'],
  [{ crashLoopBackOff: { maxContainerRestartPeriod: '10m' } }, 'crashLoopBackOff.maxContainerRestartPeriod'],
  [{ containerLogMaxSize: '0' }, 'containerLogMaxSize'],
  // Choices.
  [{ cpuManagerPolicy: 'Static' }, 'cpuManagerPolicy'],
  [{ topologyManagerPolicy: 'numa' }, 'topologyManagerPolicy'],
  [{ tlsMinVersion: '1.2' }, 'tlsMinVersion'],
  [{ hairpinMode: 'bridge' }, 'hairpinMode'],
  // Contents.
  [{ evictionHard: { 'memory.free': '1Gi' } }, 'evictionHard'],
  [{ evictionHard: { 'memory.available': '101%' } }, 'evictionHard[memory.available]'],
  [{ evictionHard: { 'memory.available': '-1Gi' } }, 'evictionHard[memory.available]'],
  [{ systemReserved: { gpu: '1' } }, 'systemReserved'],
  [{ kubeReserved: { memory: '-1Gi' } }, 'kubeReserved[memory]'],
  [{ systemReserved: { memory: '1GB' } }, 'systemReserved'],
  [{ reservedSystemCPUs: '3-0' }, 'reservedSystemCPUs'],
  [{ reservedSystemCPUs: 'all' }, 'reservedSystemCPUs'],
  [{ podLogsDir: 'var/log' }, 'podLogsDir'],
  [{ podLogsDir: '/var/../log' }, 'podLogsDir'],
  [{ podLogsDir: '/var//log' }, 'podLogsDir'],
  [{ runOnce: true }, 'runOnce'],
  // Between fields.
  [{ imageGCHighThresholdPercent: 80, imageGCLowThresholdPercent: 80 }, 'imageGCLowThresholdPercent'],
  [{ imageMinimumGCAge: '2m', imageMaximumGCAge: '2m' }, 'imageMaximumGCAge'],
  [{ serializeImagePulls: true, maxParallelImagePulls: 2 }, 'maxParallelImagePulls'],
  [{ evictionSoft: { 'memory.available': '10%' } }, 'evictionSoftGracePeriod'],
  [{ enforceNodeAllocatable: ['pods', 'pods'] }, 'enforceNodeAllocatable'],
  [{ enforceNodeAllocatable: ['none', 'pods'] }, 'enforceNodeAllocatable'],
  [{ enforceNodeAllocatable: ['nodes'] }, 'enforceNodeAllocatable'],
  [{ enforceNodeAllocatable: ['kube-reserved', 'kube-reserved-compressible'] }, 'enforceNodeAllocatable'],
  [{ enforceNodeAllocatable: ['pods'], cgroupsPerQOS: false }, 'cgroupsPerQOS'],
  [{ reservedSystemCPUs: '0', kubeReservedCgroup: '/kube' }, 'reservedSystemCPUs'],
  [{ systemReservedCgroup: '/a', systemCgroups: '/b' }, 'systemReservedCgroup'],
  [{ shutdownGracePeriod: '10s', shutdownGracePeriodCriticalPods: '20s' }, 'shutdownGracePeriodCriticalPods'],
  [{ shutdownGracePeriod: '10ms' }, 'shutdownGracePeriod'],
  [{ enableSystemLogQuery: true, enableSystemLogHandler: false }, 'enableSystemLogQuery'],
])('%j is refused', (fields, ...expected) => {
  expect(paths(fields)).toEqual(expected);
});
