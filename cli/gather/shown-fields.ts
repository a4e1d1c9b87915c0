import { crdDefinitions } from '../../api/crd-definitions.ts';
import { annotations } from '../../api/names.ts';
import { poolSettingsTable, settingNames } from '../../api/pool-settings/table.ts';

/**
 * What of an object an archive may show; everything else is left out, also fields that a later version of a kind adds.
 * `all`: the field with everything below it. `settings`: of each `name=value` the name. A list is as its items, and `*`
 * stands for every name.
 */
export type Shown = 'all' | 'settings' | { readonly [field: string]: Shown };

/** @param fields their names, separated by white space. */
function all(fields: string): Readonly<Record<string, Shown>> {
  return Object.fromEntries(wordsOf(fields).map((field) => [field, 'all']));
}

function wordsOf(text: string): readonly string[] {
  return text.trim().split(/\s+/);
}

/** What alerts and queries are is an admin's text. */
const SETTINGS = settingNames.filter((name) => name !== 'holdOnAlerts' && name !== 'holdOnQueries');

/** Annotations hold whatever tools keep in them, such as whole objects (kubectl). These are Shale's and MCO's own. */
const ANNOTATIONS = [
  ...Object.values(annotations),
  ...SETTINGS.flatMap((name) => poolSettingsTable[name].former?.annotation ?? []),
];

const METADATA: Shown = {
  ...all(`
    name namespace uid resourceVersion generation generateName ownerReferences creationTimestamp
    deletionTimestamp deletionGracePeriodSeconds finalizers labels
  `),
  annotations: all(ANNOTATIONS.join(' ')),
};

/**
 * Ignition's (coreos.github.io/ignition/specs): where things are and how they are set up, and nothing of what they
 * contain.
 */
const FILE: Shown = {
  ...all('path mode overwrite user group target hard filesystem'),
  contents: all('compression'),
  append: all('compression'),
};
const UNIT: Shown = all('name enabled enable mask');
const IGNITION_CONFIG: Shown = {
  ignition: all('version timeouts'),
  storage: {
    files: FILE,
    directories: FILE,
    links: FILE,
    disks: {
      ...all('device wipeTable'),
      partitions: all('label number sizeMiB startMiB typeGuid guid shouldExist wipePartitionEntry resize'),
    },
    raid: all('name level devices spares'),
    filesystems: all('device format path label uuid wipeFilesystem'),
    luks: {
      ...all('name device label uuid wipeVolume discard'),
      clevis: { ...all('tpm2 threshold'), custom: all('pin needsNetwork') },
    },
  },
  systemd: { units: { ...UNIT, dropins: UNIT } },
  passwd: {
    users: all('name uid groups primaryGroup homeDir shell system shouldExist'),
    groups: all('name gid system shouldExist'),
  },
};

const CONTAINER: Shown = {
  ...all(`
    name image imagePullPolicy ports resources securityContext volumeMounts terminationMessagePolicy
    terminationMessagePath workingDir
  `),
  args: 'settings',
  command: 'settings',
  env: all('name valueFrom'),
  envFrom: 'all',
  ...Object.fromEntries(
    ['startupProbe', 'livenessProbe', 'readinessProbe'].map((probe) => [
      probe,
      {
        ...all('initialDelaySeconds periodSeconds timeoutSeconds failureThreshold successThreshold'),
        httpGet: all('path port scheme'),
        tcpSocket: all('port'),
        grpc: 'all',
      },
    ]),
  ),
};
const POD_SPEC: Shown = {
  ...all(`
    nodeName nodeSelector affinity tolerations topologySpreadConstraints hostUsers serviceAccount
    serviceAccountName automountServiceAccountToken imagePullSecrets restartPolicy
    terminationGracePeriodSeconds activeDeadlineSeconds dnsPolicy hostNetwork hostPID hostIPC priority
    priorityClassName preemptionPolicy schedulerName securityContext enableServiceLinks
    shareProcessNamespace
  `),
  containers: CONTAINER,
  initContainers: CONTAINER,
  volumes: all('name hostPath emptyDir secret configMap projected downwardAPI'),
};
const POD_TEMPLATE: Shown = { metadata: METADATA, spec: POD_SPEC };

/** The shown fields of kinds beside `metadata`; of the kinds that Shale defines, all fields that aren't named here. */
const KINDS: Readonly<Record<string, Shown>> = {
  MachineConfig: {
    spec: {
      ...all('osImageURL baseOSExtensionsContainerImage extensions fips kernelType'),
      kernelArguments: 'settings',
      config: IGNITION_CONFIG,
    },
  },
  MachineConfigPool: {
    spec: {
      ...all(`
        machineConfigSelector nodeSelector paused maxUnavailable pinnedImageSets osImageStream configuration
      `),
      shale: all(SETTINGS.join(' ')),
    },
    status: 'all',
  },
  MachineOSConfig: {
    spec: {
      ...all(`
        machineConfigPool imageBuilder baseImagePullSecret renderedImagePushSecret renderedImagePushSpec
        baseImage packages buildSecrets
      `),
      containerFile: all('containerfileArch'),
      buildArguments: all('name'),
    },
    status: 'all',
  },
  KubeletConfig: {
    spec: {
      ...all('machineConfigPoolSelector logLevel tlsSecurityProfile autoSizingReserved'),
      // The kubelet's own fields, among them headers of HTTP requests: these are the ones that change with nodes.
      kubeletConfig: all(`
        apiVersion kind maxPods podsPerCore podPidsLimit cgroupDriver serializeImagePulls kubeReserved
        systemReserved reservedMemory reservedSystemCPUs enforceNodeAllocatable evictionHard evictionSoft
        evictionSoftGracePeriod evictionMinimumReclaim featureGates cpuManagerPolicy memoryManagerPolicy
        topologyManagerPolicy topologyManagerScope imageGCHighThresholdPercent imageGCLowThresholdPercent
        maxParallelImagePulls failSwapOn containerLogMaxSize containerLogMaxFiles shutdownGracePeriod
        rotateCertificates shutdownGracePeriodCriticalPods nodeStatusUpdateFrequency enableSystemLogQuery
        enableSystemLogHandler allowedUnsafeSysctls logging staticPodPath tlsMinVersion
      `),
    },
    status: 'all',
  },
  CustomResourceDefinition: all('spec status'),
  Node: all('spec status'),
  Pod: { spec: POD_SPEC, status: 'all' },
  Deployment: {
    spec: {
      ...all('replicas selector strategy minReadySeconds progressDeadlineSeconds paused'),
      template: POD_TEMPLATE,
    },
    status: 'all',
  },
  DaemonSet: {
    spec: { ...all('selector updateStrategy minReadySeconds'), template: POD_TEMPLATE },
    status: 'all',
  },
  ServiceAccount: all('secrets imagePullSecrets automountServiceAccountToken'),
  Secret: all('type immutable'),
  // The layering switch; the other ConfigMap has certificates.
  ConfigMap: {
    data: all('enabled imageRepository pushSecret pullSecret baseImage pools poolSelector signing'),
  },
  Lease: all('spec'),
};

/** Kinds that Shale defines whose fields are names, digests, counts and messages. */
const OF_NAMES: ReadonlySet<string> = new Set(
  crdDefinitions.map(({ kind }) => kind.kind).filter((kind) => !(kind in KINDS)),
);

/** @returns what may be shown of an object of the kind. */
export function shownOf(kind: string): Shown {
  const own = KINDS[kind] ?? (OF_NAMES.has(kind) ? all('spec status') : {});
  return { ...all('apiVersion kind'), metadata: METADATA, ...(typeof own === 'string' ? {} : own) };
}

/**
 * Kernel arguments that say how a machine is set up, and the words of Shale's commands. Others may be a password, or an
 * address with one in it.
 */
export const SHOWN_SETTINGS: ReadonlySet<string> = new Set(
  wordsOf(`
    console root rootflags rootfstype rw ro quiet loglevel panic mitigations hugepages hugepagesz
    default_hugepagesz transparent_hugepage isolcpus nohz nohz_full rcu_nocbs intel_iommu amd_iommu iommu
    intel_pstate processor.max_cstate nosmt selinux enforcing audit fips crashkernel psi cgroup_no_v1
    ipv6.disable systemd.unified_cgroup_hierarchy ostree composefs net.ifnames biosdevname tsc skew_tick shale
    operator machine-os-builder daemon engine-front page registry-probe
  `),
);

/** Options of Shale's commands whose values may be shown. */
export const SHOWN_OPTIONS: ReadonlySet<string> = new Set(
  wordsOf(`
    --metrics-port --builder-metrics-port --page-port --page-tls-dir --port --tls-dir --namespace --image
    --lease-namespace --cluster-name --log-level --log-format --keep-images --host-root --architecture
  `),
);
