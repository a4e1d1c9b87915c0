import { describe, expect, test } from 'vitest';
import { unsetFields } from './kubelet-fields.ts';
import { kubeletSettings, unknownKubeletFields, validateKubeletFields } from './kubelet-rules.ts';

const paths = (fields: Record<string, unknown>) =>
  validateKubeletFields(kubeletSettings(fields)).map(({ path }) => path.replace('spec.kubeletConfig.', ''));

/** As the Node Tuning Operator makes it for a PerformanceProfile: Go's own writing of the whole struct. */
const performance = {
  kind: 'KubeletConfiguration',
  apiVersion: 'kubelet.config.k8s.io/v1beta1',
  ...unsetFields,
  cpuManagerPolicy: 'static',
  cpuManagerPolicyOptions: { 'full-pcpus-only': 'true' },
  cpuManagerReconcilePeriod: '5s',
  memoryManagerPolicy: 'Static',
  topologyManagerPolicy: 'single-numa-node',
  kubeReserved: { memory: '500Mi' },
  systemReserved: { memory: '500Mi' },
  evictionHard: { 'memory.available': '100Mi', 'nodefs.available': '10%' },
  reservedSystemCPUs: '0-1',
  reservedMemory: [{ numaNode: 0, limits: { memory: '1100Mi' } }],
};

test('the object that the Node Tuning Operator makes is taken, and sets what it is made for alone', () => {
  const { kind: _, apiVersion: __, ...all } = performance;
  const made = Object.fromEntries(
    Object.entries(all).filter(
      ([name]) => !Object.hasOwn(unsetFields, name) || name === 'cpuManagerReconcilePeriod',
    ),
  );
  expect(paths(performance)).toEqual([]);
  expect(kubeletSettings(performance)).toEqual(made);
  expect(unknownKubeletFields(kubeletSettings(performance))).toEqual([]);
});

test.each<[Record<string, unknown>, Record<string, unknown>]>([
  [{ maxPods: null, evictionHard: { 'memory.available': null } }, { evictionHard: {} }],
  [{ featureOfTomorrow: null }, {}],
  [{ registerWithTaints: [{ key: 'a', timeAdded: null }] }, { registerWithTaints: [{ key: 'a' }] }],
  [{ logging: { flushFrequency: 0, format: 'json' } }, { logging: { format: 'json' } }],
  [{ logging: { verbosity: 0, options: { json: { infoBufferSize: '0' } } } }, {}],
  [
    { authentication: { webhook: { cacheTTL: '0s', enabled: false } } },
    { authentication: { webhook: { enabled: false } } },
  ],
  [{ syncFrequency: '0s', imageMaximumGCAge: '1h' }, { imageMaximumGCAge: '1h' }],
  // What the host's own file says is not taken away either.
  [{ cgroupDriver: '', clusterDNS: [], featureGates: {}, containerRuntimeEndpoint: '' }, {}],
  // Some policies demand it of workers.
  [{ staticPodPath: '' }, { staticPodPath: '' }],
  // Zeros that somebody wrote are the kubelet's to read: of these Go writes none by itself.
  [
    { port: 0, cpuManagerPolicy: '', tlsMinVersion: '', kubeAPIQPS: 0 },
    { port: 0, cpuManagerPolicy: '', tlsMinVersion: '', kubeAPIQPS: 0 },
  ],
  [
    { rotateCertificates: false, evictionMinimumReclaim: { 'memory.available': '0' } },
    { rotateCertificates: false, evictionMinimumReclaim: { 'memory.available': '0' } },
  ],
])('%j is taken, and sets %j', (fields, set) => {
  expect(paths(fields)).toEqual([]);
  expect(kubeletSettings(fields)).toEqual(set);
});

describe('what MCO takes is left to the kubelet', () => {
  test.each<Record<string, unknown>>([
    { maxPods: 500, podsPerCore: 0, podPidsLimit: -1, oomScoreAdj: -5000 },
    { systemReserved: { cpu: '500m', gpu: '1' }, evictionHard: { 'memory.free': '5%' } },
    { imageGCHighThresholdPercent: 70, imageMinimumGCAge: '-1s' },
    { tlsCipherSuites: ['TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384'], tlsCurvePreferences: [22] },
    { cpuManagerPolicyOptions: { 'full-pcpus-only': 'true' }, topologyManagerPolicy: 'numa' },
    { logging: { format: 'xml', flushFrequency: 5_000_000_000, options: { json: { splitStream: true } } } },
    { enforceNodeAllocatable: ['nodes'], shutdownGracePeriodCriticalPods: '20s' },
    { containerRuntimeEndpoint: 'unix:///run/crio/crio.sock', podLogsDir: 'var/log' },
    { podPidsLimit: 5_000_000_000, maxOpenFiles: 5_000_000_000 },
    { reservedMemory: [{ numaNode: 0, limits: { memory: 1024, 'hugepages-2Mi': '64Mi' } }] },
    { registerWithTaints: [{ key: 'example.com/a', value: 'b', effect: 'NoSchedule' }] },
    { systemReservedCgroup: '/a', systemCgroups: '/a' },
    { featureOfTomorrow: { a: [1] } },
  ])('%j', (fields) => {
    expect(paths(fields)).toEqual([]);
  });
});

test.each<[Record<string, unknown>, ...string[]]>([
  // What the host's own file has to say.
  [{ cgroupDriver: 'systemd' }, 'cgroupDriver'],
  [{ clusterDNS: ['10.0.0.1'], clusterDomain: 'x' }, 'clusterDNS', 'clusterDomain'],
  [{ featureGates: { A: true } }, 'featureGates'],
  [{ failSwapOn: false }, 'failSwapOn'],
  [{ memorySwap: { swapBehavior: 'LimitedSwap' } }, 'memorySwap.swapBehavior'],
  [{ staticPodPath: '/etc/kubernetes/manifests' }, 'staticPodPath'],
  [{ systemReservedCgroup: '/a', systemCgroups: '/b' }, 'systemReservedCgroup'],
  // Types.
  [{ maxPods: '250' }, 'maxPods'],
  [{ maxPods: 2.5 }, 'maxPods'],
  [{ evictionHard: ['memory.available<1Gi'] }, 'evictionHard'],
  [{ evictionHard: { 'memory.available': 1 } }, 'evictionHard.memory.available'],
  [{ syncFrequency: 10 }, 'syncFrequency'],
  [{ syncFrequency: '1 minute' }, 'syncFrequency'],
  [{ syncFrequency: '9999999h' }, 'syncFrequency'],
  [{ allowedUnsafeSysctls: 'kernel.msg*' }, 'allowedUnsafeSysctls'],
  [{ containerLogMaxSize: 52_428_800 }, 'containerLogMaxSize'],
  [{ serializeImagePulls: 'false' }, 'serializeImagePulls'],
  [{ eventBurst: 5_000_000_000 }, 'eventBurst'],
  [{ oomScoreAdj: -5_000_000_000 }, 'oomScoreAdj'],
  [{ tlsCurvePreferences: [5_000_000_000] }, 'tlsCurvePreferences[0]'],
  [{ logging: 'json' }, 'logging'],
  [{ logging: { verbosity: '4' } }, 'logging.verbosity'],
  [{ logging: { verbosity: -1 } }, 'logging.verbosity'],
  [{ logging: { flushFrequency: 'often' } }, 'logging.flushFrequency'],
  [{ authentication: { webhook: { cacheTTL: 10 } } }, 'authentication.webhook.cacheTTL'],
  [{ registerWithTaints: [{ key: 1 }] }, 'registerWithTaints[0].key'],
  [{ reservedMemory: [{ numaNode: 0, limits: { memory: '1GB' } }] }, 'reservedMemory[0].limits.memory'],
  [{ crashLoopBackOff: { maxContainerRestartPeriod: 60 } }, 'crashLoopBackOff.maxContainerRestartPeriod'],
  [{ systemReserved: { cpu: 1 } }, 'systemReserved.cpu'],
])('%j is refused', (fields, ...expected) => {
  expect(paths(fields)).toEqual(expected);
});

test('a problem shows what is there and what would be right, but no header', () => {
  expect(validateKubeletFields({ maxPods: '250' })).toEqual([
    { path: 'spec.kubeletConfig.maxPods', reason: 'is "250"', expected: 'an integer of 32 bits' },
  ]);
  expect(validateKubeletFields({ staticPodURLHeader: { Authorization: 'Bearer x' } })).toEqual([
    {
      path: 'spec.kubeletConfig.staticPodURLHeader.Authorization',
      reason: 'is of another type',
      expected: 'a list',
    },
  ]);
});
