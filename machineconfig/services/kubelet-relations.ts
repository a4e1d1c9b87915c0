import { type Problem, quote } from '../problem.ts';
import { problem } from './kubelet-field-rules.ts';
import type { KubeletFields } from './kubelet-fields.ts';
import { parseGoDuration } from './quantities.ts';
import { hasHttp2Suite, isKubeletSuite } from './tls-profile.ts';

/**
 * Rules between fields of one object, each of which is right by itself. What only the host's file sets is not known here: a
 * field that the object doesn't set counts as the kubelet's default, because the host's file may say nothing either.
 *
 * @returns what a kubelet would refuse.
 */
export function relationProblems(fields: KubeletFields): Problem[] {
  return [
    ...imageRelations(fields),
    ...cgroupRelations(fields),
    ...managerRelations(fields),
    ...tlsRelations(fields),
    ...otherRelations(fields),
  ];
}

/** SetDefaults_KubeletConfiguration. */
const DEFAULTS = {
  imageGCHighThresholdPercent: 85,
  imageGCLowThresholdPercent: 80,
  /** ms */
  imageMinimumGCAge: 120_000,
} as const;

function imageRelations(fields: KubeletFields): Problem[] {
  const high = Number(fields['imageGCHighThresholdPercent'] ?? DEFAULTS.imageGCHighThresholdPercent);
  const low = Number(fields['imageGCLowThresholdPercent'] ?? DEFAULTS.imageGCLowThresholdPercent);
  const list = fields['preloadedImagesVerificationAllowlist'] ?? [];
  const age = (name: string) =>
    fields[name] === undefined ? undefined : parseGoDuration(String(fields[name]));
  const oldest = age('imageMaximumGCAge') ?? 0;
  // A zero is taken for no value.
  const youngest = age('imageMinimumGCAge') || DEFAULTS.imageMinimumGCAge;
  return [
    ...(low >= high
      ? [
          problem(
            'imageGCLowThresholdPercent',
            fields['imageGCLowThresholdPercent'] === undefined ? `is not set, so it is ${low}` : `is ${low}`,
            `less than imageGCHighThresholdPercent, ${high}`,
          ),
        ]
      : []),
    ...(oldest > 0 && oldest <= youngest
      ? [problem('imageMaximumGCAge', 'is not above imageMinimumGCAge', 'a longer duration')]
      : []),
    ...(fields['serializeImagePulls'] === true && Number(fields['maxParallelImagePulls'] ?? 1) > 1
      ? [problem('maxParallelImagePulls', 'is above 1', '1, or serializeImagePulls: false')]
      : []),
    ...((list as readonly string[]).length > 0 &&
    fields['imagePullCredentialsVerificationPolicy'] !== 'NeverVerifyAllowlistedImages'
      ? [
          problem(
            'preloadedImagesVerificationAllowlist',
            'has no effect with this policy',
            'imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages beside it',
          ),
        ]
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
  const without = (
    [
      ['system-reserved', 'systemReservedCgroup'],
      ['kube-reserved', 'kubeReservedCgroup'],
    ] as const
  ).filter(([key, cgroup]) => (has(key) || has(`${key}-compressible`)) && text(cgroup) === '');
  const both = ['system-reserved', 'kube-reserved'].filter((key) => has(key) && has(`${key}-compressible`));
  return [
    ...enforced
      .filter((key) => !ENFORCEABLE.includes(key))
      .map((key) => problem(list, `has ${quote(key)}`, `only ${ENFORCEABLE.join(', ')}`)),
    ...(new Set(enforced).size < enforced.length
      ? [problem(list, 'has an entry twice', 'each entry once')]
      : []),
    ...(has('none') && enforced.length > 1 ? [problem(list, 'has more than none', 'none alone')] : []),
    ...without.map(([key, cgroup]) =>
      problem(cgroup, 'is not set', `the cgroup that ${list} limits by ${key}`),
    ),
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
    ...(text('systemCgroups') !== '' && text('cgroupRoot') === ''
      ? [problem('cgroupRoot', 'is not set', 'a cgroup beside systemCgroups')]
      : []),
    ...(systemCgroup !== '' && text('systemCgroups') !== '' && systemCgroup !== text('systemCgroups')
      ? [problem('systemReservedCgroup', 'differs from systemCgroups', 'the same cgroup')]
      : []),
  ];
}

function otherRelations(fields: KubeletFields): Problem[] {
  const duration = (name: string) => parseGoDuration(String(fields[name] ?? '0s')) ?? 0;
  const soft = Object.keys((fields['evictionSoft'] ?? {}) as object);
  const grace = (fields['evictionSoftGracePeriod'] ?? {}) as Readonly<Record<string, string>>;
  const [all, critical] = [duration('shutdownGracePeriod'), duration('shutdownGracePeriodCriticalPods')];
  const byPriority = (fields['shutdownGracePeriodByPodPriority'] ?? []) as readonly unknown[];
  const tooShort = (['shutdownGracePeriod', 'shutdownGracePeriodCriticalPods'] as const).filter(
    (name) => duration(name) !== 0 && duration(name) < 1000,
  );
  return [
    ...soft
      .filter((signal) => grace[signal] === undefined)
      .map((signal) =>
        problem('evictionSoftGracePeriod', `has no duration for ${signal}`, 'one for each soft threshold'),
      ),
    ...tooShort.map((name) => problem(name, 'is shorter than 1s', '0s, or at least 1s')),
    ...(critical > all
      ? [problem('shutdownGracePeriodCriticalPods', 'is longer than shutdownGracePeriod', 'at most as long')]
      : []),
    ...(byPriority.length > 0 && (all > 0 || critical > 0)
      ? [problem('shutdownGracePeriodByPodPriority', 'is set beside shutdownGracePeriod', 'one of the two')]
      : []),
    ...(fields['enableSystemLogQuery'] === true && fields['enableSystemLogHandler'] === false
      ? [problem('enableSystemLogQuery', 'is true', 'enableSystemLogHandler: true, which it needs')]
      : []),
  ];
}

function managerRelations(fields: KubeletFields): Problem[] {
  const options = Object.keys((fields['cpuManagerPolicyOptions'] ?? {}) as object);
  if (options.length === 0 || fields['cpuManagerPolicy'] === 'static') return [];
  return [problem('cpuManagerPolicyOptions', 'is for another policy', 'cpuManagerPolicy: static beside it')];
}

/**
 * The kubelet's server ends if it can't speak HTTP/2, which demands a cipher suite of version 1.2 with AES_128_GCM
 * (RFC 9113, 9.2.2; net/http). Suites are no setting of TLS 1.3, so nothing is demanded if that alone is spoken.
 */
function tlsRelations(fields: KubeletFields): Problem[] {
  const suites = (fields['tlsCipherSuites'] ?? []) as readonly string[];
  const unknown = suites.filter((suite) => !isKubeletSuite(suite));
  const at = 'tlsCipherSuites';
  return [
    ...unknown.map((suite) => problem(at, `has ${quote(suite)}`, 'names that crypto/tls of Go has')),
    ...(unknown.length === 0 &&
    suites.length > 0 &&
    fields['tlsMinVersion'] !== 'VersionTLS13' &&
    !hasHttp2Suite(suites)
      ? [
          problem(
            at,
            'has no suite that HTTP/2 can use',
            'TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 or TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 among them, or tlsMinVersion: VersionTLS13',
          ),
        ]
      : []),
  ];
}
