import { Cron } from 'croner';
import { z } from 'zod';
import { parseDuration } from '../duration.ts';
import { errorMessage } from '../error-message.ts';
import { parseLabelSelector } from '../label-selector.ts';
import type { NodeLimit } from '../max-unavailable.ts';
import { LEAST_SEVERITIES } from '../vulnerabilities.ts';

/** What the settings of a pool are made of: how each is written, which the API server checks, and what it means. */

/**
 * A text of a pattern. kubectl shows the message of a CEL rule, and of a pattern only the pattern.
 *
 * @param pattern without backslashes, quotes and slashes outside of brackets, as it becomes a literal of CEL.
 * @param expected what the text has to be, as a phrase.
 */
function textOf(pattern: RegExp, most: number, expected: string) {
  return z
    .string()
    .max(most)
    .refine((text) => pattern.test(text), { error: expected })
    .meta({
      'x-kubernetes-validations': [
        { rule: `self.matches('${pattern.source}')`, message: `expected ${expected}` },
      ],
    });
}

/** As metav1.Duration is written, without fractions (GEP-2257 of the Gateway API has the same form). */
export const Duration = textOf(
  /^([0-9]{1,5}[hms]){1,3}$/,
  18,
  'a duration in hours, minutes and seconds such as "30m" or "1h30m"',
);

/** A number of nodes, or a percentage. */
const COUNT = 'a number from 1, or a percentage such as "25%"';
const PERCENT = /^([1-9][0-9]?|100)%$/;
export const NodeCount = z
  .union([z.int().min(1, { error: COUNT }), z.string().regex(PERCENT, { error: COUNT })], { error: COUNT })
  .meta({ 'x-kubernetes-int-or-string': true, pattern: PERCENT.source, minimum: 1 });

/** As long as a MachineConfigNode has it. */
export const HostPath = textOf(/^([/][A-Za-z0-9_.-]+)+$/, 255, 'the absolute path of a file');

/** @throws Error for a path that climbs. */
export function readHostPath(path: string): string {
  if (path.split('/').includes('..'))
    throw new Error(`${JSON.stringify(path)}: expected a path without ".."`);
  return path;
}

/** Nodes with the same value of a label fail together. */
export const FailureDomainLimits = z.object({
  topologyKey: textOf(
    /^([a-z0-9.-]{1,253}[/])?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/,
    317,
    'the key of a label such as topology.kubernetes.io/zone',
  ).describe(
    'Key of the label of Nodes whose value is the domain of a node. Nodes without the label are a domain together.',
  ),
  maxUnavailable: NodeCount.exactOptional().describe(
    'Number or percentage of the nodes of a domain that may be unavailable at once. Absent: 1.',
  ),
});

export const HookNames = z
  .array(
    textOf(
      /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/,
      63,
      'the name of a hook: letters, digits, "-", "_" and "."',
    ),
  )
  .max(50);

/** @param text that {@link Duration} admits. @returns ms. @throws Error where it is no time at all. */
function someTime(text: string): number {
  const duration = parseDuration(text);
  if (duration === 0) throw new Error(`${JSON.stringify(text)}: expected more than no time`);
  return duration;
}

/** @returns the items as they are read. @throws Error that says which of them can't be, and why. */
function readEach<In, Out>(items: readonly In[], what: string, read: (item: In) => Out): readonly Out[] {
  return items.map((item, index) => {
    try {
      return read(item);
    } catch (error) {
      const why = errorMessage(error);
      throw new Error(`${what} ${index + 1}: ${why}`, { cause: error });
    }
  });
}

export const MaintenanceWindows = z
  .array(
    z.object({
      schedule: textOf(
        /^(@[a-z]+|[^ ]+( +[^ ]+){4})$/,
        100,
        'a cron expression of five fields such as "0 22 * * 6"',
      ).describe('When the window opens: a cron expression of five fields, such as "0 22 * * 6".'),
      duration: Duration.describe('For how long it is open, such as 4h.'),
      timeZone: z
        .string()
        .max(64)
        .exactOptional()
        .describe('IANA name of the time zone that the schedule is in, such as Europe/Berlin. Absent: UTC.'),
    }),
  )
  .max(50);

/** A time that comes again and again. */
export interface MaintenanceWindow {
  /** When it opens. */
  readonly opens: Cron;
  /** ms */
  readonly duration: number;
}

/** @throws Error that says which window can't be read, and why. */
export function readWindows(windows: z.infer<typeof MaintenanceWindows>): readonly MaintenanceWindow[] {
  return readEach(windows, 'window', ({ schedule, duration, timeZone = 'UTC' }) => {
    const opens = new Cron(schedule, { mode: '5-part', timezone: timeZone, paused: true });
    // Asked from a fixed moment: only then is it known that the time zone exists and that the day ever comes.
    if (opens.nextRun(new Date(0)) === null)
      throw new Error(`schedule ${JSON.stringify(schedule)} never comes`);
    return { opens, duration: someTime(duration) };
  });
}

export const Waves = z
  .array(
    z.object({
      nodes: NodeCount.describe(
        'Number or percentage of the nodes of the pool that run the target at the end of the wave, those of the waves before included.',
      ),
      bake: Duration.describe('For how long they run it before a further node starts, such as 1h.'),
    }),
  )
  .min(1)
  .max(20);

/** A part of a rollout: the next one starts once as many nodes have run the target for the time to bake. */
export interface Wave {
  /** Nodes of the pool that run the target at its end, those of the waves before included. */
  readonly nodes: NodeLimit;
  /** ms */
  readonly bake: number;
}

/** What no rollout gets past: because of a typo no target may reach every node at once. */
export const ONLY_CANARY: readonly Wave[] = [
  { nodes: { kind: 'count', value: 1 }, bake: Number.POSITIVE_INFINITY },
];

/** @throws Error that says which wave can't be read, and why. */
export function readWaves(waves: z.infer<typeof Waves>): readonly Wave[] {
  return readEach(waves, 'wave', ({ nodes, bake }) => ({
    nodes:
      typeof nodes === 'number'
        ? { kind: 'count', value: nodes }
        : { kind: 'percent', value: Number(nodes.slice(0, -1)) },
    bake: someTime(bake),
  }));
}

/** What is asked of a monitoring system before updates start. */
export type Questions<Question> =
  | { readonly kind: 'none' }
  /** Updates wait while the answer to any of these is that something holds them. */
  | { readonly kind: 'named'; readonly questions: readonly Question[] }
  /** The setting can't be read: updates wait. */
  | { readonly kind: 'unreadable' };

/** Matchers that an alert has to meet all of, each as Alertmanager's API takes it: `severity="critical"`. */
export type AlertMatchers = readonly string[];
export type AlertHold = Questions<AlertMatchers>;
export type QueryHold = Questions<string>;

/** Characters of a URL; proxies and servers take 8 KiB of it and more. */
const LONGEST_QUERY = 4096;

/** What is asked of a monitoring system, one text a question. */
export const QuestionTexts = z.array(z.string().min(1).max(LONGEST_QUERY)).min(1).max(50);

/**
 * A matcher of Alertmanager (its documentation, "Matcher"), with its value in quotes, and what separates it from the
 * next.
 */
const MATCHER = /\s*([A-Za-z_]\w*)\s*(=~|!~|!=|=)\s*("(?:[^"\\]|\\.)*")\s*(,|$)/y;

/** @throws Error that says what can't be read. */
export function readAlerts(sets: readonly string[]): AlertHold {
  return { kind: 'named', questions: sets.map((set) => matchersOf(set.replace(/^\{(.*)\}$/, '$1'))) };
}

function matchersOf(set: string): AlertMatchers {
  const matchers: string[] = [];
  MATCHER.lastIndex = 0;
  for (let at = 0; at < set.length; at = MATCHER.lastIndex) {
    const [, name = '', operator = '', value = ''] = MATCHER.exec(set) ?? [];
    if (name === '')
      throw new Error(
        `${JSON.stringify(set.slice(at))}: expected matchers such as severity="critical", separated by commas`,
      );
    matchers.push(`${name}${operator}${value}`);
  }
  return matchers;
}

/**
 * Whether they are PromQL only Prometheus can say.
 *
 * @throws Error where one is too long.
 */
export function readQueries(queries: readonly string[]): QueryHold {
  if (queries.some((query) => encodeURIComponent(query).length > LONGEST_QUERY))
    throw new Error(
      `a query is longer than ${LONGEST_QUERY} characters in a URL: record it by a rule of Prometheus`,
    );
  return { kind: 'named', questions: queries };
}

/** What an update must not bring. */
export const UpdateHolds = z.object({
  vulnerabilities: z
    .enum(LEAST_SEVERITIES, { error: `one of ${LEAST_SEVERITIES.join(', ')}` })
    .exactOptional()
    .describe(
      'Severity, such as high: a node that would get another base image waits while reports that are attached to the images say that the new one brings a vulnerability of this severity or worse, or while one of both has no report. Only in layered mode.',
    ),
  acceptedBaseImages: z
    .array(textOf(/^sha256:[0-9a-f]{64}$/, 71, 'a digest such as sha256:… with 64 hexadecimal digits'))
    .max(20)
    .exactOptional()
    .describe('Digests of base images that are taken all the same, whatever they bring.'),
});

const GROUP = /^[a-zA-Z0-9.-]+$/;

/** As the protocol of FleetLock has it (Zincati's documentation, "FleetLock protocol"). */
export const FleetLockField = z.object({
  url: textOf(
    /^https?:[/][/][^ ?#@]+$/,
    253,
    'an HTTP or HTTPS URL without a user, a query or a fragment',
  ).describe('Its base URL, one of those of --fleetlock-url: the path of the protocol follows.'),
  group: textOf(GROUP, 253, 'letters, digits, "." and "-"')
    .exactOptional()
    .describe("The group of the pool's nodes there. Absent: default."),
});

/** A lock service that coordinates reboots. */
export interface FleetLock {
  /** Its base URL, without a slash at its end. */
  readonly url: string;
  /** A service may have a limit of its own for each group. */
  readonly group: string;
}

/** Whom a pool's nodes ask before a reboot. */
export type FleetLockSetting =
  | { readonly kind: 'none' }
  | { readonly kind: 'named'; readonly lock: FleetLock }
  /** It can't be read: reboots wait. */
  | { readonly kind: 'unreadable' };

/** @throws Error that says what is wrong, without the text, which may have a password. */
export function readFleetLockUrl(text: string): string {
  const url = URL.canParse(text.trim()) ? new URL(text.trim()) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) throw new Error('it is no HTTP or HTTPS URL');
  if (url.username !== '' || url.password !== '') throw new Error('a URL must not have a user or a password');
  if (url.search !== '' || url.hash !== '')
    throw new Error('a base URL must not have a query or a fragment: the path of the protocol follows it');
  let { href } = url;
  while (href.endsWith('/')) href = href.slice(0, -1);
  return href;
}

/** @throws Error for a URL that can't be used. */
export function readFleetLock({ url, group = 'default' }: z.infer<typeof FleetLockField>): FleetLockSetting {
  return { kind: 'named', lock: { url: readFleetLockUrl(url), group } };
}

/** Pods that vote. */
export interface PodsSelected {
  readonly namespace: string;
  /** As the API server takes it (Kubernetes, "Labels and Selectors"). */
  readonly selector: string;
}

/** The static pods of etcd, of kubeadm, Talos and RKE2, and of OpenShift. */
export const ETCD_PODS: readonly PodsSelected[] = [
  { namespace: 'kube-system', selector: 'component=etcd' },
  { namespace: 'openshift-etcd', selector: 'app=etcd' },
];

export const QuorumPods = z
  .array(
    z.object({
      namespace: textOf(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/, 63, 'the name of a namespace'),
      selector: z.string().min(1).max(1000).describe('A label selector, such as component=etcd.'),
    }),
  )
  .min(1)
  .max(10);

/** @throws Error for a label selector that can't be parsed. */
export function readQuorumPods(pods: z.infer<typeof QuorumPods>): readonly PodsSelected[] {
  return readEach(pods, 'pods', (each) => {
    parseLabelSelector(each.selector);
    return each;
  });
}
