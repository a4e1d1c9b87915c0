import { z } from 'zod';
import { crdOf } from '../../api/crd.ts';
import { crdDefinitions } from '../../api/crd-definitions.ts';
import type { CustomResourceDefinition } from '../../api/kubernetes.ts';
import { shortList } from '../../api/plural.ts';
import { ApiError, ApiUnreachable, type StatusBody } from '../../cluster/api-client.ts';
import type { Connection } from '../../cluster/connection.ts';
import { readJson, send } from '../../cluster/http-request.ts';
import { conditionIsTrue } from '../../cluster/update-object.ts';
import { CommandError, exitCodes } from '../command-line/exit-codes.ts';
import { type Finding, findings } from './finding.ts';

/** What an API server reports about itself. */
interface ServerFacts {
  /** Such as v1.33.1. */
  readonly version: string;
  readonly minor: number;
  /** ms since the epoch: the server's clock, from its Date header. */
  readonly time: number;
  /** ms since the epoch: this machine's clock at the same moment. */
  readonly localTime: number;
}

const Version = z.object({ gitVersion: z.string(), minor: z.string() });

/** The first version with ValidatingAdmissionPolicy (v1), which limits each daemon to its own node. */
const OLDEST_MINOR = 30;
/** ms; a Date header has whole seconds, and the response takes time. */
const TOLERATED_SKEW_MS = 5_000;
/** ms; node leases last 300 s, and skew must not make a renewed lease seem expired. */
const WORST_SKEW_MS = 60_000;
const DEADLINE_MS = 30_000;
/** The request in words, for errors. */
const READ_VERSION = 'get /version';

/** @throws {CommandError} when the server does not respond. */
export async function readServerFacts(connection: Connection, signal: AbortSignal): Promise<ServerFacts> {
  const either = AbortSignal.any([signal, AbortSignal.timeout(DEADLINE_MS)]);
  try {
    const response = await send(connection, { method: 'GET', path: '/version', signal: either });
    const localTime = Date.now();
    const body = await readJson(response);
    const { statusCode: status = 0 } = response;
    if (status !== 200) throw new ApiError(status, READ_VERSION, (body ?? {}) as StatusBody);
    const { gitVersion, minor } = versionIn(body);
    const time = Date.parse(response.headers.date ?? '');
    return {
      version: gitVersion,
      minor: Number.parseInt(minor, 10),
      time: Number.isNaN(time) ? localTime : time,
      localTime,
    };
  } catch (error) {
    signal.throwIfAborted();
    const why = either.aborted ? new Error(`no response within ${DEADLINE_MS / 1000} s`) : error;
    const { message } = error instanceof ApiError ? error : new ApiUnreachable(READ_VERSION, why);
    throw new CommandError(message, exitCodes.unavailable, { cause: error });
  }
}

/** @throws Error for what no API server answers. */
function versionIn(body: unknown): z.infer<typeof Version> {
  const version = Version.safeParse(body);
  if (!version.success) throw new Error('the response is no version: is this the address of an API server?');
  return version.data;
}

/** Judges the server's version, and its clock against this machine's. */
export function judgeServer({ version, minor, time, localTime }: ServerFacts): Finding[] {
  const api = findings('API server');
  const clock = findings('clocks');
  const skew = Math.abs(time - localTime);
  const seconds = Math.round(skew / 1000);
  return [
    minor >= OLDEST_MINOR
      ? api.ok(version)
      : api.failure(`${version} is too old`, `upgrade Kubernetes to 1.${OLDEST_MINOR} or later`),
    skew <= TOLERATED_SKEW_MS
      ? clock.ok('the clocks of this machine and the API server agree')
      : clock.warning(
          `the clocks of this machine and the API server differ by ${seconds} s, and so do ages and --until`,
          'synchronise the clocks (chronyc tracking, timedatectl)',
        ),
  ];
}

/** The holder of a lease, and the time of its last renewal by the holder's clock. */
export interface LeaseTime {
  readonly of: string;
  readonly renewTime: string | undefined;
  /** Whether the holder renews it now: the kubelet of a Ready node does so every ten seconds. */
  readonly isAlive: boolean;
}

/** Renewals in the future, or old renewals of a holder that is working, mean that its clock is wrong. */
export function judgeLeaseTimes(leases: readonly LeaseTime[], now: number): Finding[] {
  const { warning, failure, ok } = findings('clocks');
  const off = leases.flatMap(({ of, renewTime, isAlive }) => {
    const ahead = Date.parse(renewTime ?? '') - now;
    const isBehind = isAlive && -ahead > WORST_SKEW_MS;
    return ahead > TOLERATED_SKEW_MS || isBehind ? [{ of, ahead }] : [];
  });
  if (off.length === 0)
    return leases.length === 0
      ? []
      : [ok(`the clocks of all lease holders (${leases.length}) agree with the API server's`)];
  return off.map(({ of, ahead }) => {
    const seconds = Math.round(Math.abs(ahead) / 1000);
    const what = `the clock of ${of} is ${seconds} s ${ahead > 0 ? 'ahead of' : 'behind'} the API server's`;
    const fix =
      'synchronise its clock (chronyc tracking, timedatectl): leases expire and are taken over based on time';
    return Math.abs(ahead) > WORST_SKEW_MS ? failure(what, fix) : warning(what, fix);
  });
}

/** Fields named in a finding; the others are counted. */
const NAMED_FIELDS = 5;

/**
 * Compares the cluster's CustomResourceDefinitions with those of this version.
 *
 * @param present every CustomResourceDefinition of the cluster.
 */
export function judgeDefinitions(present: readonly CustomResourceDefinition[]): Finding[] {
  const { ok, failure } = findings('CRDs');
  const fix = 'kubectl apply -k manifests/crds, from the version that is running';
  const wrong = crdDefinitions.flatMap((definition) => {
    const expected = crdOf(definition);
    const { name } = expected.metadata;
    const installed = present.find(({ metadata }) => metadata.name === name);
    if (installed === undefined) return [failure(`${name} is missing`, fix)];
    if (!conditionIsTrue(installed.status?.conditions, 'Established')) {
      return [failure(`${name} is not Established`, `run kubectl describe crd ${name} to see why`)];
    }
    const missing = missingFields(schemaOf(expected.spec), schemaOf(installed.spec));
    if (missing.length === 0) return [];
    const named = shortList(missing, NAMED_FIELDS);
    return [failure(`${name} belongs to another version: it does not have ${named}`, fix)];
  });
  return wrong.length === 0
    ? [ok(`all ${crdDefinitions.length} are installed and belong to this version`)]
    : wrong;
}

/** @returns whether the API server serves Shale's own kinds. */
export function areServed(present: readonly CustomResourceDefinition[]): boolean {
  const names = new Set(present.map(({ metadata }) => metadata.name));
  return crdDefinitions.every((definition) => names.has(crdOf(definition).metadata.name));
}

type Schema = Readonly<Record<string, unknown>>;

function schemaOf(spec: Readonly<Record<string, unknown>>): Schema {
  const versions = (spec['versions'] ?? []) as readonly {
    readonly storage?: boolean;
    readonly schema?: { readonly openAPIV3Schema?: Schema };
  }[];
  return versions.find(({ storage }) => storage === true)?.schema?.openAPIV3Schema ?? {};
}

/** @returns the paths of properties that only the expected schema has: the API server prunes their values. */
function missingFields(expected: Schema, actual: Schema, path = ''): string[] {
  if (actual['x-kubernetes-preserve-unknown-fields'] === true) return [];
  const properties = Object.entries((expected['properties'] ?? {}) as Record<string, Schema>);
  const known = (actual['properties'] ?? {}) as Record<string, Schema>;
  const own = properties.flatMap(([name, schema]) => {
    const at = path === '' ? name : `${path}.${name}`;
    const other = known[name];
    return other === undefined ? [at] : missingFields(schema, other, at);
  });
  const items = expected['items'] as Schema | undefined;
  return items === undefined
    ? own
    : [...own, ...missingFields(items, (actual['items'] ?? {}) as Schema, `${path}[]`)];
}
