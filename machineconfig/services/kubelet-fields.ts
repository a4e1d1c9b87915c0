import { z } from 'zod';
import { parseGoDuration, parseQuantity } from './quantities.ts';

/**
 * The fields of a KubeletConfiguration (kubelet.config.k8s.io/v1beta1, Kubernetes 1.35): their types as Go decodes
 * them, and which of them may change while pods run. What a kubelet makes of a value is not here: it changes with each
 * release, and a node on which the kubelet doesn't start stops the rollout with the kubelet's own message.
 */

/** Fields of a KubeletConfiguration as an object has them. */
export type KubeletFields = Readonly<Record<string, unknown>>;

const bool = z.boolean({ error: 'true or false' });
const text = z.string({ error: 'a string' });
const number = z.number({ error: 'a number' });
const int32 = z.int32({ error: 'an integer of 32 bits' });
/** 2^53 is beyond what any of these fields means. */
const int64 = z.int({ error: 'an integer' });
const A_DURATION = { error: 'a duration such as 10s' };
const duration = z.string(A_DURATION).refine((value) => parseGoDuration(value) !== undefined, A_DURATION);
const A_QUANTITY = { error: 'a quantity such as 50Mi' };
const quantity = z
  .union([z.string(), z.number()], A_QUANTITY)
  .refine((value) => parseQuantity(value) !== undefined, A_QUANTITY);
const list = (item: z.ZodType) => z.array(item, { error: 'a list' });
const byName = (item: z.ZodType) => z.record(z.string(), item, { error: 'an object' });
const object = <T extends z.core.$ZodLooseShape>(shape: T) =>
  z.object(shape, { error: 'an object' }).partial();
const logOptions = object({ splitStream: bool, infoBufferSize: quantity });

/**
 * Fields that only concern the kubelet's own work: how it pulls and collects images, rotates logs, reports, serves and
 * logs. A kubelet that restarts leaves containers running (Kubernetes, "Container Runtime Interface"), and none of
 * these changes what a pod was given or admitted with. So a restart of kubelet.service applies them without a drain or
 * a reboot.
 *
 * Not among them, though they look harmless: maxPods, reservations, eviction thresholds and managers' policies, because
 * a restarting kubelet admits its pods again and rejects those that no longer fit; and how often a kubelet reports to
 * the API server, because a node that reports too seldom is taken for lost and its pods are evicted. Nor are fields
 * that a kubelet accepts or refuses by its version or its feature gates. A kubelet that does not start with a field is
 * found by the daemon that restarts it, on the first node that gets the field.
 */
const live = object({
  syncFrequency: duration,
  fileCheckFrequency: duration,
  httpCheckFrequency: duration,
  tlsCipherSuites: list(text),
  tlsCurvePreferences: list(int32),
  tlsMinVersion: text,
  registryPullQPS: int32,
  registryBurst: int32,
  serializeImagePulls: bool,
  maxParallelImagePulls: int32,
  eventRecordQPS: int32,
  eventBurst: int32,
  kubeAPIQPS: int32,
  kubeAPIBurst: int32,
  enableContentionProfiling: bool,
  enableProfilingHandler: bool,
  enableDebugFlagsHandler: bool,
  enableSystemLogHandler: bool,
  streamingConnectionIdleTimeout: duration,
  nodeStatusMaxImages: int32,
  imageMinimumGCAge: duration,
  imageMaximumGCAge: duration,
  imageGCHighThresholdPercent: int32,
  imageGCLowThresholdPercent: int32,
  volumeStatsAggPeriod: duration,
  containerLogMaxSize: text,
  containerLogMaxFiles: int32,
  containerLogMaxWorkers: int32,
  containerLogMonitorInterval: duration,
  logging: object({
    format: text,
    flushFrequency: z.union([z.int(), duration], { error: 'a duration such as 5s' }),
    verbosity: z.int({ error: 'an integer' }).min(0, { error: 'an integer that is not negative' }),
    vmodule: list(object({ filePattern: text, verbosity: int32 })),
    options: object({ text: logOptions, json: logOptions }),
  }),
});

const atBoot = object({
  enableSystemLogQuery: bool,
  showHiddenMetricsForVersion: text,
  enableServer: bool,
  staticPodPath: text,
  podLogsDir: text,
  staticPodURL: text,
  staticPodURLHeader: byName(list(text)),
  address: text,
  port: int32,
  readOnlyPort: int32,
  tlsCertFile: text,
  tlsPrivateKeyFile: text,
  rotateCertificates: bool,
  serverTLSBootstrap: bool,
  authentication: object({
    x509: object({ clientCAFile: text }),
    webhook: object({ enabled: bool, cacheTTL: duration }),
    anonymous: object({ enabled: bool }),
  }),
  authorization: object({
    mode: text,
    webhook: object({ cacheAuthorizedTTL: duration, cacheUnauthorizedTTL: duration }),
  }),
  imagePullCredentialsVerificationPolicy: text,
  preloadedImagesVerificationAllowlist: list(text),
  enableDebuggingHandlers: bool,
  healthzPort: int32,
  healthzBindAddress: text,
  oomScoreAdj: int32,
  clusterDomain: text,
  clusterDNS: list(text),
  nodeStatusUpdateFrequency: duration,
  nodeStatusReportFrequency: duration,
  nodeLeaseDurationSeconds: int32,
  kubeletCgroups: text,
  systemCgroups: text,
  cgroupRoot: text,
  cgroupsPerQOS: bool,
  cgroupDriver: text,
  cpuManagerPolicy: text,
  singleProcessOOMKill: bool,
  cpuManagerPolicyOptions: byName(text),
  cpuManagerReconcilePeriod: duration,
  memoryManagerPolicy: text,
  topologyManagerPolicy: text,
  topologyManagerScope: text,
  topologyManagerPolicyOptions: byName(text),
  qosReserved: byName(text),
  runtimeRequestTimeout: duration,
  hairpinMode: text,
  maxPods: int32,
  podCIDR: text,
  podPidsLimit: int64,
  resolvConf: text,
  runOnce: bool,
  cpuCFSQuota: bool,
  cpuCFSQuotaPeriod: duration,
  maxOpenFiles: int64,
  contentType: text,
  evictionHard: byName(text),
  evictionSoft: byName(text),
  evictionSoftGracePeriod: byName(text),
  evictionPressureTransitionPeriod: duration,
  evictionMaxPodGracePeriod: int32,
  evictionMinimumReclaim: byName(text),
  mergeDefaultEvictionSettings: bool,
  podsPerCore: int32,
  enableControllerAttachDetach: bool,
  protectKernelDefaults: bool,
  makeIPTablesUtilChains: bool,
  iptablesMasqueradeBit: int32,
  iptablesDropBit: int32,
  featureGates: byName(bool),
  failSwapOn: bool,
  memorySwap: object({ swapBehavior: text }),
  configMapAndSecretChangeDetectionStrategy: text,
  systemReserved: byName(text),
  kubeReserved: byName(text),
  reservedSystemCPUs: text,
  systemReservedCgroup: text,
  kubeReservedCgroup: text,
  enforceNodeAllocatable: list(text),
  allowedUnsafeSysctls: list(text),
  volumePluginDir: text,
  providerID: text,
  kernelMemcgNotification: bool,
  shutdownGracePeriod: duration,
  shutdownGracePeriodCriticalPods: duration,
  shutdownGracePeriodByPodPriority: list(object({ priority: int32, shutdownGracePeriodSeconds: int64 })),
  crashLoopBackOff: object({ maxContainerRestartPeriod: duration }),
  reservedMemory: list(object({ numaNode: int32, limits: byName(quantity) })),
  seccompDefault: bool,
  memoryThrottlingFactor: number,
  memoryReservationPolicy: text,
  registerWithTaints: list(object({ key: text, value: text, effect: text, timeAdded: text })),
  registerNode: bool,
  tracing: object({ endpoint: text, samplingRatePerMillion: int32 }),
  localStorageCapacityIsolation: bool,
  containerRuntimeEndpoint: text,
  imageServiceEndpoint: text,
  failCgroupV1: bool,
  userNamespaces: object({ idsPerPod: int64 }),
});

/** A whole KubeletConfiguration; of other fields it keeps nothing. */
export const kubeletConfiguration = z.object({ ...live.shape, ...atBoot.shape });

/** @returns whether a restart of the kubelet applies the field while pods run; false for unknown fields. */
export function isLiveField(name: string): boolean {
  return Object.hasOwn(live.shape, name);
}

/**
 * What Go writes of a KubeletConfiguration in which nothing is set, because these fields have no `omitempty`. An object
 * that a program made has them all (Node Tuning Operator), and in a drop-in they would replace what the host's own file
 * says.
 */
export const unsetFields = {
  syncFrequency: '0s',
  fileCheckFrequency: '0s',
  httpCheckFrequency: '0s',
  authentication: { x509: {}, webhook: { cacheTTL: '0s' }, anonymous: {} },
  authorization: { webhook: { cacheAuthorizedTTL: '0s', cacheUnauthorizedTTL: '0s' } },
  streamingConnectionIdleTimeout: '0s',
  nodeStatusUpdateFrequency: '0s',
  nodeStatusReportFrequency: '0s',
  imageMinimumGCAge: '0s',
  imageMaximumGCAge: '0s',
  volumeStatsAggPeriod: '0s',
  cpuManagerReconcilePeriod: '0s',
  runtimeRequestTimeout: '0s',
  evictionPressureTransitionPeriod: '0s',
  memorySwap: {},
  logging: {
    flushFrequency: 0,
    verbosity: 0,
    options: { text: { infoBufferSize: '0' }, json: { infoBufferSize: '0' } },
  },
  shutdownGracePeriod: '0s',
  shutdownGracePeriodCriticalPods: '0s',
  crashLoopBackOff: {},
  containerRuntimeEndpoint: '',
} as const;
