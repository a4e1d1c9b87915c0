import { type Problem, quote } from '../problem.ts';
import { parseDuration, parseQuantity } from './quantities.ts';

/** @returns a problem of a field of spec.kubeletConfig. */
export function problem(field: string, reason: string, expected: string): Problem {
  return { path: `spec.kubeletConfig.${field}`, reason, expected };
}

/** Clean, absolute and of ASCII characters alone, because metrics have it as a label. */
const LOGS_DIRECTORY = /^(\/(?!\.{1,2}(\/|$))[!-.0-~]+)+$/;

/** Rules of single fields that are more than a range or a choice, for values of the field's type. */
export const fieldRules: Readonly<Record<string, (value: unknown) => Problem[]>> = {
  memorySwap: (value) =>
    'swapBehavior' in (value as object)
      ? [problem('memorySwap.swapBehavior', 'may not be set', "the host's own")]
      : [],
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
  evictionHard: (value) => evictionProblems('evictionHard', value),
  evictionSoft: (value) => evictionProblems('evictionSoft', value),
  evictionMinimumReclaim: (value) => evictionProblems('evictionMinimumReclaim', value),
  systemReserved: (value) => reservationProblems('systemReserved', value),
  kubeReserved: (value) => reservationProblems('kubeReserved', value),
  crashLoopBackOff: (value) => crashLoopProblems(value),
};

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

function evictionProblems(name: string, value: unknown): Problem[] {
  return Object.entries(value as Readonly<Record<string, string>>).flatMap(([signal, amount]) => {
    if (!SIGNALS.includes(signal)) {
      return [problem(name, `names the unknown signal ${quote(signal)}`, `one of ${SIGNALS.join(', ')}`)];
    }
    const [, percent] = /^(\d+(?:\.\d+)?)%$/.exec(amount) ?? [];
    const isRight = percent === undefined ? (parseQuantity(amount) ?? 0) > 0 : Number(percent) <= 100;
    const expected = 'a positive quantity, or 0% to 100%';
    return isRight ? [] : [problem(`${name}[${signal}]`, `is ${quote(amount)}`, expected)];
  });
}

const RESERVED = ['cpu', 'memory', 'ephemeral-storage', 'pid'];

function reservationProblems(name: string, value: unknown): Problem[] {
  return Object.entries(value as Readonly<Record<string, string | number>>).flatMap(([resource, amount]) => {
    if (!RESERVED.includes(resource)) {
      return [problem(name, `reserves ${quote(resource)}`, `only ${RESERVED.join(', ')}`)];
    }
    const expected = 'a quantity that is not negative';
    return (parseQuantity(amount) ?? -1) >= 0
      ? []
      : [problem(`${name}[${resource}]`, `is ${quote(String(amount))}`, expected)];
  });
}

function crashLoopProblems(value: unknown): Problem[] {
  const { maxContainerRestartPeriod: period } = value as { readonly maxContainerRestartPeriod?: unknown };
  const ms = typeof period === 'string' ? parseDuration(period) : undefined;
  if (period === undefined || (ms !== undefined && ms >= 1000 && ms <= 300_000)) return [];
  return [
    problem('crashLoopBackOff.maxContainerRestartPeriod', 'is out of range', 'a duration from 1s to 300s'),
  ];
}
