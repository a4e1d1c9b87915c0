import { type Problem, quote } from '../problem.ts';
import { parseGoDuration, parseQuantity } from './quantities.ts';

/** @returns a problem of a field of spec.kubeletConfig. */
export function problem(field: string, reason: string, expected: string): Problem {
  return { path: `spec.kubeletConfig.${field}`, reason, expected };
}

/** Clean, absolute and of ASCII characters alone, because metrics have it as a label. */
const LOGS_DIRECTORY = /^(\/(?!\.{1,2}(\/|$))[!-.0-~]+)+$/;

/** Rules of single fields that are more than a range or a choice, for values of the field's type. */
export const fieldRules: Readonly<Record<string, (value: unknown) => Problem[]>> = {
  staticPodPath: (value) =>
    value === ''
      ? []
      : [
          problem(
            'staticPodPath',
            'may not be set',
            'an empty string, which ends static pods, or no such field',
          ),
        ],
  runOnce: (value) => (value === true ? [problem('runOnce', 'is true', 'false: such a kubelet ends')] : []),
  podLogsDir: (value) =>
    LOGS_DIRECTORY.test(String(value))
      ? []
      : [problem('podLogsDir', `is ${quote(String(value))}`, 'a clean absolute path of ASCII characters')],
  containerLogMaxSize: (value) =>
    (parseQuantity(String(value)) ?? 0) > 0
      ? []
      : [problem('containerLogMaxSize', `is ${quote(String(value))}`, 'a positive quantity')],
  memoryThrottlingFactor: (value) =>
    Number(value) > 0 && Number(value) <= 1
      ? []
      : [problem('memoryThrottlingFactor', `is ${Number(value)}`, 'a number above 0, and 1 at most')],
  reservedSystemCPUs: (value) =>
    isCpuSet(String(value))
      ? []
      : [problem('reservedSystemCPUs', `is ${quote(String(value))}`, 'a list of CPUs such as 0-3,8')],
  evictionHard: (value) => amountProblems('evictionHard', value, threshold),
  evictionSoft: (value) => amountProblems('evictionSoft', value, threshold),
  evictionMinimumReclaim: (value) => amountProblems('evictionMinimumReclaim', value, reclaim),
  evictionSoftGracePeriod: (value) => amountProblems('evictionSoftGracePeriod', value, gracePeriod),
  systemReserved: (value) => amountProblems('systemReserved', value, reservation),
  kubeReserved: (value) => amountProblems('kubeReserved', value, reservation),
  qosReserved: (value) => amountProblems('qosReserved', value, qosReservation),
  cpuManagerPolicyOptions: (value) => optionProblems('cpuManagerPolicyOptions', value, CPU_OPTIONS),
  topologyManagerPolicyOptions: (value) =>
    optionProblems('topologyManagerPolicyOptions', value, TOPOLOGY_OPTIONS),
  allowedUnsafeSysctls: (value) =>
    (value as readonly string[])
      .filter((pattern) => !isNamespacedSysctl(pattern))
      .map((pattern) =>
        problem(
          'allowedUnsafeSysctls',
          `has ${quote(pattern)}`,
          'sysctls of kernel.shm*, kernel.msg*, kernel.sem, fs.mqueue.* and net.*',
        ),
      ),
  preloadedImagesVerificationAllowlist: (value) =>
    (value as readonly string[])
      .filter((pattern) => !/^[^\s*]*[^\s*/](?:\/\*)?$/.test(pattern))
      .map((pattern) =>
        problem(
          'preloadedImagesVerificationAllowlist',
          `has ${quote(pattern)}`,
          'names of images, with /* alone as the wildcard, at the end',
        ),
      ),
  tlsCurvePreferences: (value) => {
    const curves = value as readonly number[];
    const isRight = curves.every((id) => CURVES.has(id)) && new Set(curves).size === curves.length;
    const expected = `each at most once of ${[...CURVES].join(', ')}`;
    return isRight ? [] : [problem('tlsCurvePreferences', `is ${curves.join(', ')}`, expected)];
  },
  showHiddenMetricsForVersion: (value) =>
    /^(\d+\.\d+)?$/.test(String(value))
      ? []
      : [
          problem(
            'showHiddenMetricsForVersion',
            `is ${quote(String(value))}`,
            "the minor version before the kubelet's own, such as 1.34",
          ),
        ],
};

/** Identifiers of curves that a kubelet's TLS server can use (crypto/tls of Go 1.26). */
const CURVES: ReadonlySet<number> = new Set([23, 24, 25, 29, 4587, 4588, 4589]);

function isCpuSet(text: string): boolean {
  const isRange = (part: string) => {
    const [, first, last = first] = /^(\d+)(?:-(\d+))?$/.exec(part) ?? [];
    return first !== undefined && Number(first) <= Number(last);
  };
  return text === '' || text.split(',').every(isRange);
}

/** kubelet/eviction, opForSignal. */
const SIGNALS = [
  'memory.available',
  'allocatableMemory.available',
  'nodefs.available',
  'nodefs.inodesFree',
  'imagefs.available',
  'imagefs.inodesFree',
  'containerfs.available',
  'containerfs.inodesFree',
  'pid.available',
];

/** What a kubelet reads under each name of a field whose values have names. */
interface Amounts {
  readonly names: readonly string[];
  /** Says of a name that is none of these what it is not. */
  readonly unknown: string;
  readonly is: (amount: string | number) => boolean;
  readonly expected: string;
}

const percentOf = (amount: string | number): number | undefined => {
  const [, percent] = /^(\d+(?:\.\d+)?)%$/.exec(String(amount)) ?? [];
  return percent === undefined ? undefined : Number(percent);
};

const threshold: Amounts = {
  names: SIGNALS,
  unknown: 'is no signal',
  is: (amount) => {
    const percent = percentOf(amount);
    return percent === undefined ? (parseQuantity(amount) ?? 0) > 0 : percent <= 100;
  },
  expected: 'a positive quantity, or 0% to 100%',
};

const reclaim: Amounts = {
  names: SIGNALS,
  unknown: 'is no signal',
  is: (amount) => {
    const percent = percentOf(amount);
    return percent === undefined ? (parseQuantity(amount) ?? -1) >= 0 : percent > 0;
  },
  expected: 'a quantity that is not negative, or a percentage above 0%',
};

const gracePeriod: Amounts = {
  names: SIGNALS,
  unknown: 'is no signal',
  is: (amount) => (parseGoDuration(String(amount)) ?? -1) >= 0,
  expected: 'a duration that is not negative',
};

const reservation: Amounts = {
  names: ['cpu', 'memory', 'ephemeral-storage', 'pid'],
  unknown: 'can not be reserved',
  is: (amount) => (parseQuantity(amount) ?? -1) >= 0,
  expected: 'a quantity that is not negative',
};

const qosReservation: Amounts = {
  names: ['memory'],
  unknown: 'can not be reserved',
  is: (amount) => Number.isInteger(percentOf(amount)) && Number(percentOf(amount)) <= 100,
  expected: '0% to 100%',
};

function amountProblems(name: string, value: unknown, { names, unknown, is, expected }: Amounts): Problem[] {
  return Object.entries(value as Readonly<Record<string, string | number>>).flatMap(([key, amount]) => {
    if (!names.includes(key))
      return [problem(name, `has ${quote(key)}, which ${unknown}`, `only ${names.join(', ')}`)];
    return is(amount) ? [] : [problem(`${name}[${key}]`, `is ${quote(String(amount))}`, expected)];
  });
}

type Options = Readonly<Record<string, 'true or false' | 'an integer'>>;

/** kubelet/cm/cpumanager and topologymanager, policy_options.go; a kubelet doesn't start with any other. */
const CPU_OPTIONS: Options = {
  'full-pcpus-only': 'true or false',
  'distribute-cpus-across-numa': 'true or false',
  'align-by-socket': 'true or false',
  'distribute-cpus-across-cores': 'true or false',
  'strict-cpu-reservation': 'true or false',
  'prefer-align-cpus-by-uncorecache': 'true or false',
};
const TOPOLOGY_OPTIONS: Options = {
  'prefer-closest-numa-nodes': 'true or false',
  'max-allowable-numa-nodes': 'an integer',
};

/** Go's strconv.ParseBool. */
const BOOLEAN = /^(?:1|t|T|TRUE|true|True|0|f|F|FALSE|false|False)$/;

function optionProblems(name: string, value: unknown, options: Options): Problem[] {
  return Object.entries(value as Readonly<Record<string, string>>).flatMap(([key, given]) => {
    const type = Object.hasOwn(options, key) ? options[key] : undefined;
    if (type === undefined)
      return [
        problem(name, `has ${quote(key)}, which is no option`, `only ${Object.keys(options).join(', ')}`),
      ];
    const isRight = type === 'an integer' ? /^\d{1,9}$/.test(given) : BOOLEAN.test(given);
    return isRight ? [] : [problem(`${name}[${key}]`, `is ${quote(given)}`, type)];
  });
}

/** A name, or its beginning with * behind it (kubernetes/pkg/apis/policy/validation). */
const SYSCTL = /^(?:[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?[./])*(?:[a-z0-9][-_a-z0-9]*)?[a-z0-9*]$/;

/** A pod can only have sysctls of its own namespaces (component-helpers, node/util/sysctl). */
function isNamespacedSysctl(pattern: string): boolean {
  const name = pattern.replaceAll('/', '.').replace(/\*$/, '');
  return (
    SYSCTL.test(pattern) &&
    (name === 'kernel.sem' ||
      ['kernel.shm', 'kernel.msg', 'fs.mqueue.', 'net.'].some((prefix) => name.startsWith(prefix)))
  );
}
