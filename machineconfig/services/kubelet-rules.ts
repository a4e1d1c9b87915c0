import { type Problem, quote } from '../problem.ts';
import { fieldRules, problem } from './kubelet-field-rules.ts';
import { fieldTypeProblem } from './kubelet-types.ts';
import { parseDuration } from './quantities.ts';

/** Fields of a KubeletConfiguration as an object has them. */
export type KubeletFields = Readonly<Record<string, unknown>>;

/**
 * What MCO refuses because a node might not come back (validateUserKubeletConfig), and what a drop-in can't be: the host's own
 * file says these things, together with the container runtime's or the cluster's settings.
 */
const ofTheHost: Readonly<Record<string, string>> = {
  apiVersion: "no apiVersion: Shale writes the drop-in's",
  kind: "no kind: Shale writes the drop-in's",
  cgroupDriver: "the host's own, which is the container runtime's too",
  clusterDNS: "the cluster's own, in the host's file",
  clusterDomain: "the cluster's own, in the host's file",
  featureGates: "the cluster's own, in the host's file",
  failSwapOn: "the host's own, which depends on its swap devices",
  containerRuntimeEndpoint: "the host's own",
};

interface Range {
  readonly min: number;
  readonly max?: number;
}
/** kubelet/apis/config/validation, and the ports of a host. */
const ranges: Readonly<Record<string, Range>> = {
  nodeLeaseDurationSeconds: { min: 1 },
  eventBurst: { min: 0 },
  eventRecordQPS: { min: 0 },
  evictionMaxPodGracePeriod: { min: -1 },
  healthzPort: { min: 0, max: 65_535 },
  port: { min: 1, max: 65_535 },
  readOnlyPort: { min: 0, max: 65_535 },
  imageGCHighThresholdPercent: { min: 0, max: 100 },
  imageGCLowThresholdPercent: { min: 0, max: 100 },
  iptablesDropBit: { min: 0, max: 31 },
  iptablesMasqueradeBit: { min: 0, max: 31 },
  kubeAPIBurst: { min: 0 },
  kubeAPIQPS: { min: 0 },
  nodeStatusMaxImages: { min: -1 },
  maxOpenFiles: { min: 0 },
  maxPods: { min: 0 },
  oomScoreAdj: { min: -1000, max: 1000 },
  podPidsLimit: { min: -1 },
  podsPerCore: { min: 0 },
  registryBurst: { min: 0 },
  registryPullQPS: { min: 0 },
  maxParallelImagePulls: { min: 1 },
  containerLogMaxWorkers: { min: 1 },
  containerLogMaxFiles: { min: 2 },
};

/** ms */
const durations: Readonly<Record<string, Range & { readonly words: string }>> = {
  cpuCFSQuotaPeriod: { min: 1, max: 1000, words: 'a duration from 1ms to 1s' },
  containerLogMonitorInterval: { min: 3000, words: 'a duration of at least 3s' },
  imageMinimumGCAge: { min: 0, words: 'a duration that is not negative' },
  imageMaximumGCAge: { min: 0, words: 'a duration that is not negative' },
};

const choices: Readonly<Record<string, readonly string[]>> = {
  cpuManagerPolicy: ['none', 'static'],
  memoryManagerPolicy: ['None', 'Static'],
  topologyManagerPolicy: ['none', 'best-effort', 'restricted', 'single-numa-node'],
  topologyManagerScope: ['container', 'pod'],
  hairpinMode: ['promiscuous-bridge', 'hairpin-veth', 'none'],
  configMapAndSecretChangeDetectionStrategy: ['Get', 'Cache', 'Watch'],
  imagePullCredentialsVerificationPolicy: [
    'NeverVerify',
    'NeverVerifyPreloadedImages',
    'NeverVerifyAllowlistedImages',
    'AlwaysVerify',
  ],
  memoryReservationPolicy: ['None', 'TieredReservation'],
  tlsMinVersion: ['VersionTLS10', 'VersionTLS11', 'VersionTLS12', 'VersionTLS13'],
};

/**
 * Validates the fields that an object sets with the rules that the kubelet applies when it starts, as far as they can be
 * decided without the host's own file: a kubelet that refuses its configuration takes the node down.
 *
 * @returns every problem; fields that this version doesn't know are none.
 */
export function validateKubeletFields(fields: KubeletFields): Problem[] {
  const each = Object.entries(fields).flatMap(([name, value]) => problemOfField(name, value));
  return each.length > 0 ? each : relations(fields);
}

function problemOfField(name: string, value: unknown): Problem[] {
  const instead = ofTheHost[name];
  if (instead !== undefined) return [problem(name, 'may not be set', instead)];
  const mistyped = fieldTypeProblem(name, value);
  if (mistyped !== undefined) return [problem(name, mistyped.reason, mistyped.expected)];
  return [
    ...outOfRange(name, value),
    ...tooShortOrLong(name, value),
    ...notOneOf(name, value),
    ...(fieldRules[name]?.(value) ?? []),
  ];
}

function outOfRange(name: string, value: unknown): Problem[] {
  const range = ranges[name];
  if (range === undefined || typeof value !== 'number') return [];
  const { min, max = Number.MAX_SAFE_INTEGER } = range;
  if (value >= min && value <= max) return [];
  const expected =
    range.max === undefined ? `an integer of at least ${min}` : `an integer from ${min} to ${max}`;
  return [problem(name, `is ${value}`, expected)];
}

function tooShortOrLong(name: string, value: unknown): Problem[] {
  const range = durations[name];
  if (range === undefined || typeof value !== 'string') return [];
  const ms = parseDuration(value) ?? 0;
  if (ms >= range.min && ms <= (range.max ?? Number.MAX_SAFE_INTEGER)) return [];
  return [problem(name, `is ${quote(value)}`, range.words)];
}

function notOneOf(name: string, value: unknown): Problem[] {
  const allowed = choices[name];
  if (allowed === undefined || typeof value !== 'string' || allowed.includes(value)) return [];
  return [problem(name, `is ${quote(value)}`, `one of ${allowed.join(', ')}`)];
}

/** Rules between fields of one object, each of the right type. What only the host's file sets is not known here. */
function relations(fields: KubeletFields): Problem[] {
  return [...imageRelations(fields), ...cgroupRelations(fields), ...otherRelations(fields)];
}

function imageRelations(fields: KubeletFields): Problem[] {
  const high = fields['imageGCHighThresholdPercent'];
  const low = fields['imageGCLowThresholdPercent'];
  const age = (name: string) =>
    fields[name] === undefined ? undefined : parseDuration(String(fields[name]));
  const [youngest = 0, oldest = 0] = [age('imageMinimumGCAge'), age('imageMaximumGCAge')];
  return [
    ...(typeof high === 'number' && typeof low === 'number' && low >= high
      ? [problem('imageGCLowThresholdPercent', `is ${low}`, `less than imageGCHighThresholdPercent, ${high}`)]
      : []),
    ...(oldest > 0 && oldest <= youngest
      ? [problem('imageMaximumGCAge', 'is not above imageMinimumGCAge', 'a longer duration')]
      : []),
    ...(fields['serializeImagePulls'] === true && Number(fields['maxParallelImagePulls'] ?? 1) > 1
      ? [problem('maxParallelImagePulls', 'is above 1', '1, or serializeImagePulls: false')]
      : []),
  ];
}

const ENFORCEABLE = [
  'pods',
  'system-reserved',
  'system-reserved-compressible',
  'kube-reserved',
  'kube-reserved-compressible',
  'none',
];

function cgroupRelations(fields: KubeletFields): Problem[] {
  const text = (name: string) => String(fields[name] ?? '');
  const enforced = (fields['enforceNodeAllocatable'] ?? []) as readonly string[];
  const has = (key: string) => enforced.includes(key);
  const list = 'enforceNodeAllocatable';
  const systemCgroup = text('systemReservedCgroup');
  const kubeCgroup = text('kubeReservedCgroup');
  const both = ['system-reserved', 'kube-reserved'].filter((key) => has(key) && has(`${key}-compressible`));
  return [
    ...enforced
      .filter((key) => !ENFORCEABLE.includes(key))
      .map((key) => problem(list, `has ${quote(key)}`, `only ${ENFORCEABLE.join(', ')}`)),
    ...(new Set(enforced).size < enforced.length
      ? [problem(list, 'has an entry twice', 'each entry once')]
      : []),
    ...(has('none') && enforced.length > 1 ? [problem(list, 'has more than none', 'none alone')] : []),
    ...both.map((key) => problem(list, `has ${key} and ${key}-compressible`, 'one of them')),
    ...(fields['cgroupsPerQOS'] === false && enforced.some((key) => key !== 'none')
      ? [problem('cgroupsPerQOS', 'is false', `true, or ${list}: [none]`)]
      : []),
    ...(text('reservedSystemCPUs') !== '' && (systemCgroup !== '' || kubeCgroup !== '')
      ? [
          problem(
            'reservedSystemCPUs',
            'is set together with a cgroup for reservations',
            'either reservedSystemCPUs, or systemReservedCgroup and kubeReservedCgroup',
          ),
        ]
      : []),
    ...(systemCgroup !== '' && text('systemCgroups') !== '' && systemCgroup !== text('systemCgroups')
      ? [problem('systemReservedCgroup', 'differs from systemCgroups', 'the same cgroup')]
      : []),
  ];
}

function otherRelations(fields: KubeletFields): Problem[] {
  const duration = (name: string) => parseDuration(String(fields[name] ?? '0s')) ?? 0;
  const soft = Object.keys((fields['evictionSoft'] ?? {}) as object);
  const grace = (fields['evictionSoftGracePeriod'] ?? {}) as Readonly<Record<string, string>>;
  const [all, critical] = [duration('shutdownGracePeriod'), duration('shutdownGracePeriodCriticalPods')];
  const tooShort = (['shutdownGracePeriod', 'shutdownGracePeriodCriticalPods'] as const).filter(
    (name) => duration(name) !== 0 && duration(name) < 1000,
  );
  return [
    ...soft
      .filter((signal) => (parseDuration(grace[signal] ?? '') ?? -1) < 0)
      .map((signal) =>
        problem('evictionSoftGracePeriod', `has no duration for ${signal}`, 'one for each soft threshold'),
      ),
    ...tooShort.map((name) => problem(name, 'is shorter than 1s', '0s, or at least 1s')),
    ...(fields['shutdownGracePeriod'] !== undefined && critical > all
      ? [problem('shutdownGracePeriodCriticalPods', 'is longer than shutdownGracePeriod', 'at most as long')]
      : []),
    ...(fields['enableSystemLogQuery'] === true && fields['enableSystemLogHandler'] === false
      ? [problem('enableSystemLogQuery', 'is true', 'enableSystemLogHandler: true, which it needs')]
      : []),
  ];
}
