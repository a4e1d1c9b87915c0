/**
 * The fields of a KubeletConfiguration (kubelet.config.k8s.io/v1beta1, Kubernetes 1.35): their JSON types, and which of them
 * may change while pods run.
 */

/** Fields of a KubeletConfiguration as an object has them. */
export type KubeletFields = Readonly<Record<string, unknown>>;

export type FieldType =
  | 'boolean'
  /** Of 32 bits: a kubelet doesn't start with a larger one. */
  | 'integer'
  | 'long'
  | 'number'
  | 'string'
  | 'duration'
  | 'quantity'
  | 'strings'
  | 'integers'
  | 'objects'
  | 'object'
  | 'strings by name'
  | 'quantities by name'
  | 'booleans by name';

/**
 * Fields that only concern the kubelet's own work: how it pulls and collects images, rotates logs, reports, serves and logs.
 * A kubelet that restarts leaves containers running (Kubernetes, "Container Runtime Interface"), and none of these changes
 * what a pod was given or admitted with. So a restart of kubelet.service applies them without a drain or a reboot.
 *
 * Not among them, though they look harmless: maxPods, reservations, eviction thresholds and managers' policies, because a
 * restarting kubelet admits its pods again and rejects those that no longer fit; and how often a kubelet reports to the API
 * server, because a node that reports too seldom is taken for lost and its pods are evicted. Nor are fields that a kubelet
 * accepts or refuses by its version or its feature gates, which Shale doesn't know: after a reboot a node that is not healthy
 * rolls back.
 */
const live: Readonly<Record<string, FieldType>> = {
  syncFrequency: 'duration',
  fileCheckFrequency: 'duration',
  httpCheckFrequency: 'duration',
  tlsCipherSuites: 'strings',
  tlsCurvePreferences: 'integers',
  tlsMinVersion: 'string',
  registryPullQPS: 'integer',
  registryBurst: 'integer',
  serializeImagePulls: 'boolean',
  maxParallelImagePulls: 'integer',
  eventRecordQPS: 'integer',
  eventBurst: 'integer',
  kubeAPIQPS: 'integer',
  kubeAPIBurst: 'integer',
  enableContentionProfiling: 'boolean',
  enableProfilingHandler: 'boolean',
  enableDebugFlagsHandler: 'boolean',
  enableSystemLogHandler: 'boolean',
  streamingConnectionIdleTimeout: 'duration',
  nodeStatusMaxImages: 'integer',
  imageMinimumGCAge: 'duration',
  imageMaximumGCAge: 'duration',
  imageGCHighThresholdPercent: 'integer',
  imageGCLowThresholdPercent: 'integer',
  volumeStatsAggPeriod: 'duration',
  containerLogMaxSize: 'quantity',
  containerLogMaxFiles: 'integer',
  containerLogMaxWorkers: 'integer',
  containerLogMonitorInterval: 'duration',
  logging: 'object',
};

const atBoot: Readonly<Record<string, FieldType>> = {
  enableSystemLogQuery: 'boolean',
  showHiddenMetricsForVersion: 'string',
  enableServer: 'boolean',
  staticPodPath: 'string',
  podLogsDir: 'string',
  staticPodURL: 'string',
  staticPodURLHeader: 'object',
  address: 'string',
  port: 'integer',
  readOnlyPort: 'integer',
  tlsCertFile: 'string',
  tlsPrivateKeyFile: 'string',
  rotateCertificates: 'boolean',
  serverTLSBootstrap: 'boolean',
  authentication: 'object',
  authorization: 'object',
  imagePullCredentialsVerificationPolicy: 'string',
  preloadedImagesVerificationAllowlist: 'strings',
  enableDebuggingHandlers: 'boolean',
  healthzPort: 'integer',
  healthzBindAddress: 'string',
  oomScoreAdj: 'integer',
  clusterDomain: 'string',
  clusterDNS: 'strings',
  nodeStatusUpdateFrequency: 'duration',
  nodeStatusReportFrequency: 'duration',
  nodeLeaseDurationSeconds: 'integer',
  kubeletCgroups: 'string',
  systemCgroups: 'string',
  cgroupRoot: 'string',
  cgroupsPerQOS: 'boolean',
  cgroupDriver: 'string',
  cpuManagerPolicy: 'string',
  singleProcessOOMKill: 'boolean',
  cpuManagerPolicyOptions: 'strings by name',
  cpuManagerReconcilePeriod: 'duration',
  memoryManagerPolicy: 'string',
  topologyManagerPolicy: 'string',
  topologyManagerScope: 'string',
  topologyManagerPolicyOptions: 'strings by name',
  qosReserved: 'strings by name',
  runtimeRequestTimeout: 'duration',
  hairpinMode: 'string',
  maxPods: 'integer',
  podCIDR: 'string',
  podPidsLimit: 'long',
  resolvConf: 'string',
  runOnce: 'boolean',
  cpuCFSQuota: 'boolean',
  cpuCFSQuotaPeriod: 'duration',
  maxOpenFiles: 'long',
  contentType: 'string',
  evictionHard: 'strings by name',
  evictionSoft: 'strings by name',
  evictionSoftGracePeriod: 'strings by name',
  evictionPressureTransitionPeriod: 'duration',
  evictionMaxPodGracePeriod: 'integer',
  evictionMinimumReclaim: 'strings by name',
  mergeDefaultEvictionSettings: 'boolean',
  podsPerCore: 'integer',
  enableControllerAttachDetach: 'boolean',
  protectKernelDefaults: 'boolean',
  makeIPTablesUtilChains: 'boolean',
  iptablesMasqueradeBit: 'integer',
  iptablesDropBit: 'integer',
  featureGates: 'booleans by name',
  failSwapOn: 'boolean',
  memorySwap: 'object',
  configMapAndSecretChangeDetectionStrategy: 'string',
  systemReserved: 'quantities by name',
  kubeReserved: 'quantities by name',
  reservedSystemCPUs: 'string',
  systemReservedCgroup: 'string',
  kubeReservedCgroup: 'string',
  enforceNodeAllocatable: 'strings',
  allowedUnsafeSysctls: 'strings',
  volumePluginDir: 'string',
  providerID: 'string',
  kernelMemcgNotification: 'boolean',
  shutdownGracePeriod: 'duration',
  shutdownGracePeriodCriticalPods: 'duration',
  shutdownGracePeriodByPodPriority: 'objects',
  crashLoopBackOff: 'object',
  reservedMemory: 'objects',
  seccompDefault: 'boolean',
  memoryThrottlingFactor: 'number',
  memoryReservationPolicy: 'string',
  registerWithTaints: 'objects',
  registerNode: 'boolean',
  tracing: 'object',
  localStorageCapacityIsolation: 'boolean',
  containerRuntimeEndpoint: 'string',
  imageServiceEndpoint: 'string',
  failCgroupV1: 'boolean',
  userNamespaces: 'object',
};

/** @returns the type of a field; undefined for one that no KubeletConfiguration of this version has. */
export function typeOfField(name: string): FieldType | undefined {
  if (Object.hasOwn(live, name)) return live[name];
  return Object.hasOwn(atBoot, name) ? atBoot[name] : undefined;
}

/** @returns whether a restart of the kubelet applies the field while pods run; false for unknown fields. */
export function isLiveField(name: string): boolean {
  return Object.hasOwn(live, name);
}
