import { type Problem, quote } from '../problem.ts';
import { type KubeletFields, kubeletConfiguration, unsetFields } from './kubelet-fields.ts';

/**
 * What MCO refuses, because a node might not come back (validateUserKubeletConfig): the host's own file says these
 * things, with the container runtime's and the cluster's settings.
 */
const ofTheHost: Readonly<Record<string, string>> = {
  cgroupDriver: "the host's own, which is the container runtime's too",
  clusterDNS: "the cluster's own, in the host's file",
  clusterDomain: "the cluster's own, in the host's file",
  featureGates: "the cluster's own, in the host's file",
  staticPodPath: "the host's own",
  failSwapOn: "the host's own, which depends on its swap devices",
  'memorySwap.swapBehavior': "the host's own, which depends on its swap devices",
};

/**
 * Judges fields as MCO does: by their types and by what the host's own file has to say. What a kubelet refuses beyond
 * that it refuses on the first node that gets it.
 *
 * @param fields as kubeletSettings gives them. @returns every problem; unknown fields are accepted.
 */
export function validateKubeletFields(fields: KubeletFields): Problem[] {
  const { systemReservedCgroup = '', systemCgroups = '', memorySwap } = fields;
  const given: KubeletFields = {
    ...fields,
    'memorySwap.swapBehavior': (memorySwap as { readonly swapBehavior?: unknown } | undefined)?.swapBehavior,
  };
  const notTheirs = Object.entries(ofTheHost)
    .filter(([name]) => !isZero(given[name]))
    .map(([name, expected]) => problem([name], 'may not be set', expected));
  const mistyped = (kubeletConfiguration.safeParse(fields).error?.issues ?? []).map(({ path, message }) =>
    problem(path, whatIs(fields, path), message),
  );
  return [
    ...notTheirs,
    ...mistyped,
    ...(systemReservedCgroup !== '' && systemCgroups !== '' && systemReservedCgroup !== systemCgroups
      ? [problem(['systemReservedCgroup'], 'differs from systemCgroups', 'the same cgroup')]
      : []),
  ];
}

/** @returns the paths of fields that no kubelet of this version reads. @param fields of the right types. */
export function unknownKubeletFields(fields: KubeletFields): string[] {
  return dropped(fields, kubeletConfiguration.parse(fields)).map(pathOf);
}

function dropped(given: unknown, parsed: unknown): PropertyKey[][] {
  if (!isTree(given) || !isTree(parsed)) return [];
  return Object.entries(given).flatMap(([key, item]) => {
    const step = Array.isArray(given) ? Number(key) : key;
    return Object.hasOwn(parsed, key) ? dropped(item, parsed[key]).map((path) => [step, ...path]) : [[step]];
  });
}

/**
 * @param given spec.kubeletConfig as it is written.
 * @returns what it sets: no null, which in a drop-in would take a field out of the host's own file (RFC 7386), no zero
 *   that Go writes for a field that is not set, and neither apiVersion nor kind, which are the drop-in's own.
 */
export function kubeletSettings({ apiVersion: _, kind: __, ...given }: KubeletFields): KubeletFields {
  const set = Object.entries(withoutUnset(given, unsetFields));
  return Object.fromEntries(set.filter(([name, value]) => !(ZERO_IS_UNSET.has(name) && isZero(value))));
}

/** An empty staticPodPath ends static pods, which some policies demand of workers. */
const ZERO_IS_UNSET: ReadonlySet<string> = new Set(
  Object.keys(ofTheHost).filter((name) => name !== 'staticPodPath'),
);

function withoutUnset(given: KubeletFields, unset: KubeletFields): KubeletFields {
  return Object.fromEntries(
    Object.entries(given).flatMap(([name, value]) => {
      const zero = unset[name];
      if (value === null || value === zero) return [];
      if (Array.isArray(value))
        return [[name, value.map((item) => (isObject(item) ? withoutUnset(item, {}) : item))]];
      if (!isObject(value)) return [[name, value]];
      const rest = withoutUnset(value, isObject(zero) ? zero : {});
      return isObject(zero) && Object.keys(rest).length === 0 ? [] : [[name, rest]];
    }),
  );
}

/**
 * @returns whether Go takes a value for none: not false, because the only such field there is can be told apart from
 * none.
 */
function isZero(value: unknown): boolean {
  return value === undefined || value === '' || (isTree(value) && Object.keys(value).length === 0);
}

type Tree = Readonly<Record<string, unknown>>;

function isTree(value: unknown): value is Tree {
  return typeof value === 'object' && value !== null;
}

function isObject(value: unknown): value is Tree {
  return isTree(value) && !Array.isArray(value);
}

function problem(path: readonly PropertyKey[], reason: string, expected: string): Problem {
  return { path: pathOf(path), reason, expected };
}

function pathOf(path: readonly PropertyKey[]): string {
  const steps = path.map((step) =>
    typeof step === 'string' && /^[\w.]{1,100}$/.test(step) ? `.${step}` : `[${quoteStep(step)}]`,
  );
  return `spec.kubeletConfig${steps.join('')}`;
}

const quoteStep = (step: PropertyKey) => (typeof step === 'number' ? String(step) : quote(String(step)));

const SHOWN = 60;

/** Headers may be secret. */
function whatIs(fields: KubeletFields, path: readonly PropertyKey[]): string {
  const found = path.reduce<unknown>((at, step) => (isTree(at) ? at[String(step)] : undefined), fields);
  const shown = isTree(found) || path[0] === 'staticPodURLHeader' ? undefined : JSON.stringify(found);
  if (shown !== undefined && shown.length <= SHOWN) return `is ${shown}`;
  return Array.isArray(found) ? 'is a list' : isObject(found) ? 'is an object' : 'is of another type';
}
