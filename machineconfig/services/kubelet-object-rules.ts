import { z } from 'zod';
import type { Problem } from '../problem.ts';
import { parseGoDuration, parseQuantity } from './quantities.ts';

/**
 * The fields of a KubeletConfiguration that have fields themselves, with the rules that a kubelet applies when it starts
 * (kubelet/apis/config/validation; component-base, logs/api and tracing/api). A message of these schemas says what is expected.
 */

const bool = z.boolean({ error: 'true or false' });
const text = z.string({ error: 'a string' });
const integer = (min: number, max: number) => {
  const error = `an integer from ${min} to ${max}`;
  return z.int({ error }).min(min, { error }).max(max, { error });
};
/** Go's int32. */
const INT32 = 2 ** 31;
const duration = z
  .string({ error: 'a duration such as 10s' })
  .refine((value) => (parseGoDuration(value) ?? -1) >= 0, { error: 'a duration such as 10s' });
const positiveQuantity = z
  .union([z.string(), z.number()])
  .refine((value) => (parseQuantity(value) ?? 0) > 0, { error: 'a quantity above 0, such as 1Gi' });
const object = <T extends z.ZodRawShape>(shape: T) => z.object(shape, { error: 'an object' });
const list = <T extends z.ZodType>(item: T) => z.array(item, { error: 'a list' });

const verbosity = integer(0, INT32 - 1);
/** A text, or whole nanoseconds. */
const flushFrequency = z
  .union([z.string(), z.int()])
  .refine((value) => (typeof value === 'string' ? (parseGoDuration(value) ?? 0) : value) > 0, {
    error: 'a duration above 0, such as 5s',
  });

/** `options` takes effect only with the gate LoggingAlphaOptions, and a kubelet without it refuses them. */
const NO_OPTIONS = 'no such field: it needs a feature gate, which only the host’s own file may open';

const logging = object({
  format: z.enum(['', 'text', 'json'], { error: 'text or json' }).exactOptional(),
  flushFrequency: flushFrequency.exactOptional(),
  verbosity: verbosity.exactOptional(),
  vmodule: list(
    object({
      filePattern: text.regex(/^[^=,]+$/, { error: 'a file name or pattern without = and commas' }),
      verbosity: verbosity.exactOptional(),
    }),
  ).exactOptional(),
  options: z.never({ error: NO_OPTIONS }).exactOptional(),
}).refine(({ format = '', vmodule = [] }) => vmodule.length === 0 || format === '' || format === 'text', {
  path: ['vmodule'],
  error: 'no such field, or the format text',
});

/** gRPC's names; without a scheme it is dns. */
const ENDPOINT = /^(?:(?:dns|unix|unix-abstract):\/\/|(?!.*\/\/))[^\s%]*$/;

const tracing = object({
  endpoint: text
    .regex(ENDPOINT, { error: 'host:port, or a URL of dns, unix or unix-abstract' })
    .exactOptional(),
  samplingRatePerMillion: integer(0, 1_000_000).exactOptional(),
});

/** A label's name, with or without a domain before it, and a label's value. */
const LABEL_NAME =
  /^(?:(?=.{1,253}\/)[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const LABEL_VALUE = /^(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;

const taint = object({
  key: text.regex(LABEL_NAME, { error: "a label's name" }),
  value: text.regex(LABEL_VALUE, { error: "a label's value" }).exactOptional(),
  effect: z.enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute'], {
    error: 'NoSchedule, PreferNoSchedule or NoExecute',
  }),
  timeAdded: z.never({ error: 'no such field' }).exactOptional(),
});

const reservedMemory = list(
  object({
    numaNode: integer(0, INT32 - 1),
    limits: z.record(
      z.string().regex(/^(?:memory|hugepages-.+)$/, { error: 'memory or hugepages-SIZE' }),
      positiveQuantity,
      { error: 'quantities by name' },
    ),
  }),
).refine(
  (nodes) => {
    const names = nodes.flatMap(({ numaNode, limits }) =>
      Object.keys(limits).map((name) => `${numaNode} ${name}`),
    );
    return new Set(names).size === names.length;
  },
  { error: 'each resource of a NUMA node once' },
);

/** Users of one pod: whole ranges of 65536, of which 2^32 exist. */
const IDS = 65_536;
const idsPerPod = integer(IDS, 2 ** 32).multipleOf(IDS, { error: `a multiple of ${IDS}` });

const CRASH_LOOP = { error: 'a duration from 1s to 300s' };

const schemas: Readonly<Record<string, z.ZodType>> = {
  logging,
  tracing,
  authentication: object({
    x509: object({ clientCAFile: text.exactOptional() }).exactOptional(),
    webhook: object({ enabled: bool.exactOptional(), cacheTTL: duration.exactOptional() }).exactOptional(),
    anonymous: object({ enabled: bool.exactOptional() }).exactOptional(),
  }),
  authorization: object({
    mode: z.enum(['', 'AlwaysAllow', 'Webhook'], { error: 'AlwaysAllow or Webhook' }).exactOptional(),
    webhook: object({
      cacheAuthorizedTTL: duration.exactOptional(),
      cacheUnauthorizedTTL: duration.exactOptional(),
    }).exactOptional(),
  }),
  memorySwap: object({
    swapBehavior: z.never({ error: "no such field: it is the host's own" }).exactOptional(),
  }),
  crashLoopBackOff: object({
    maxContainerRestartPeriod: z
      .string(CRASH_LOOP)
      .refine((value) => {
        const ms = parseGoDuration(value) ?? 0;
        return ms >= 1000 && ms <= 300_000;
      }, CRASH_LOOP)
      .exactOptional(),
  }),
  userNamespaces: object({ idsPerPod: idsPerPod.exactOptional() }),
  registerWithTaints: list(taint),
  reservedMemory,
  shutdownGracePeriodByPodPriority: list(
    object({
      priority: integer(-INT32, INT32 - 1).exactOptional(),
      shutdownGracePeriodSeconds: z.int({ error: 'an integer' }).exactOptional(),
    }),
  ),
  staticPodURLHeader: z.record(z.string(), list(text), { error: 'lists of strings by name' }),
};

/** @returns what is wrong within the value of a field; nothing for fields without fields of their own. */
export function objectProblems(name: string, value: unknown): Problem[] {
  return (schemas[name]?.safeParse(value).error?.issues ?? []).map(({ path, message }) => ({
    path: pathOf([name, ...path]),
    reason: name === 'staticPodURLHeader' ? UNREADABLE : whatIs(value, path),
    expected: message,
  }));
}

/** @returns the paths of the fields within a valid value that no kubelet of this version reads. */
export function unknownWithin(name: string, value: unknown): string[] {
  const parsed = schemas[name]?.safeParse(value);
  return parsed?.success === true ? dropped(value, parsed.data).map((path) => pathOf([name, ...path])) : [];
}

function dropped(given: unknown, parsed: unknown): PropertyKey[][] {
  if (typeof given !== 'object' || given === null || typeof parsed !== 'object' || parsed === null) return [];
  const known = parsed as Readonly<Record<string, unknown>>;
  const isList = Array.isArray(given);
  return Object.entries(given).flatMap(([key, item]) => {
    const step = isList ? Number(key) : key;
    return Object.hasOwn(known, key) ? dropped(item, known[key]).map((path) => [step, ...path]) : [[step]];
  });
}

function pathOf([name = '', ...steps]: readonly PropertyKey[]): string {
  const rest = steps.map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`));
  return `spec.kubeletConfig.${String(name)}${rest.join('')}`;
}

/** Also of headers, which may be secret. */
const UNREADABLE = 'is not what a kubelet reads';
const SHOWN = 60;

function whatIs(value: unknown, path: readonly PropertyKey[]): string {
  const found = path.reduce<unknown>(
    (at, step) => (typeof at === 'object' && at !== null ? Reflect.get(at, step) : undefined),
    value,
  );
  if (found === undefined) return 'is missing';
  const shown = typeof found === 'object' ? undefined : JSON.stringify(found);
  return shown === undefined || shown.length > SHOWN ? UNREADABLE : `is ${shown}`;
}
