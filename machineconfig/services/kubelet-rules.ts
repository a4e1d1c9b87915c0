import { type Problem, quote } from '../problem.ts';
import { fieldRules, problem } from './kubelet-field-rules.ts';
import { type KubeletFields, typeOfField } from './kubelet-fields.ts';
import { objectProblems } from './kubelet-object-rules.ts';
import { relationProblems } from './kubelet-relations.ts';
import { fieldTypeProblem } from './kubelet-types.ts';
import { parseGoDuration } from './quantities.ts';

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
  // A negative one ends the collection.
  volumeStatsAggPeriod: { min: -Infinity, words: 'a duration' },
};
/** Of most durations a kubelet makes tickers, and crashes if they are negative. */
const notNegative: Range & { readonly words: string } = { min: 0, words: 'a duration that is not negative' };

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
  return each.length > 0 ? each : relationProblems(fields);
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
    ...objectProblems(name, value),
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
  const range = durations[name] ?? (typeOfField(name) === 'duration' ? notNegative : undefined);
  if (range === undefined || typeof value !== 'string') return [];
  const ms = parseGoDuration(value) ?? 0;
  if (ms >= range.min && ms <= (range.max ?? Number.MAX_SAFE_INTEGER)) return [];
  return [problem(name, `is ${quote(value)}`, range.words)];
}

function notOneOf(name: string, value: unknown): Problem[] {
  const allowed = choices[name];
  if (allowed === undefined || typeof value !== 'string' || allowed.includes(value)) return [];
  return [problem(name, `is ${quote(value)}`, `one of ${allowed.join(', ')}`)];
}
