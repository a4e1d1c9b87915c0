import { z } from 'zod';
import { crdOf } from '../../api/crd.ts';
import { crdDefinitions } from '../../api/crd-definitions.ts';
import type { CustomResourceDefinition } from '../../api/kubernetes.ts';
import type { Connection } from '../../cluster/connection.ts';
import { readJson, send } from '../../cluster/http-request.ts';
import { conditionIsTrue } from '../../cluster/update-object.ts';
import { CommandError, exitCodes } from '../command-line/exit-codes.ts';
import { type Finding, findings } from './finding.ts';

/** What an API server says of itself. */
interface ServerFacts {
  /** Such as v1.33.1. */
  readonly version: string;
  readonly minor: number;
  /** ms since the epoch: the server's clock, as exact as its Date header. */
  readonly time: number;
  /** ms since the epoch: this machine's clock at the same moment. */
  readonly localTime: number;
}

const Version = z.object({ gitVersion: z.string(), minor: z.string() });

/** The first with ValidatingAdmissionPolicy (v1), which keeps daemons to their own nodes. */
const OLDEST_MINOR = 30;
/** ms; a Date header has whole seconds, and an answer takes its time. */
const TOLERATED_SKEW_MS = 5_000;
/** ms; node leases last 300 s, and a renewal that seems later than it is must not let one expire. */
const WORST_SKEW_MS = 60_000;
const DEADLINE_MS = 30_000;

/** @throws CommandError when the server does not answer. */
export async function askServer(connection: Connection, signal: AbortSignal): Promise<ServerFacts> {
  const either = AbortSignal.any([signal, AbortSignal.timeout(DEADLINE_MS)]);
  try {
    const response = await send(connection, { method: 'GET', path: '/version', signal: either });
    const localTime = Date.now();
    const { gitVersion, minor } = Version.parse(await readJson(response));
    const time = Date.parse(response.headers.date ?? '');
    return {
      version: gitVersion,
      minor: Number.parseInt(minor, 10),
      time: Number.isNaN(time) ? localTime : time,
      localTime,
    };
  } catch (error) {
    signal.throwIfAborted();
    const why = error instanceof Error ? error.message : String(error);
    throw new CommandError(`the API server does not answer /version: ${why}`, exitCodes.unavailable, {
      cause: error,
    });
  }
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

/** By whom a lease is renewed, and when it says it was. */
export interface LeaseTime {
  readonly of: string;
  readonly renewTime: string | undefined;
  /** Whether the holder is known to renew it now: a node that is Ready does so every ten seconds. */
  readonly isAlive: boolean;
}

/** A holder whose renewals lie in the future, or seem old while it works, has another clock than the server. */
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
    const mend =
      'synchronise its clock (chronyc tracking, timedatectl): leases expire and are taken over based on time';
    return Math.abs(ahead) > WORST_SKEW_MS ? failure(what, mend) : warning(what, mend);
  });
}

/** Fields named in a finding; the rest is counted. */
const NAMED_FIELDS = 5;

/**
 * Compares the cluster's CustomResourceDefinitions with those of this version.
 *
 * @param present every definition that the cluster has.
 */
export function judgeDefinitions(present: readonly CustomResourceDefinition[]): Finding[] {
  const { ok, failure } = findings('CRDs');
  const mend = 'kubectl apply -k manifests/crds, from the version that is running';
  const wrong = crdDefinitions.flatMap((definition) => {
    const wanted = crdOf(definition);
    const { name } = wanted.metadata;
    const found = present.find(({ metadata }) => metadata.name === name);
    if (found === undefined) return [failure(`${name} is missing`, mend)];
    if (!conditionIsTrue(found.status?.conditions, 'Established')) {
      return [failure(`${name} is not Established`, `run kubectl describe crd ${name} to see why`)];
    }
    const missing = missingFields(schemaOf(wanted.spec), schemaOf(found.spec));
    if (missing.length === 0) return [];
    const more = missing.length - NAMED_FIELDS;
    const named = `${missing.slice(0, NAMED_FIELDS).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
    return [failure(`${name} belongs to another version: it does not have ${named}`, mend)];
  });
  return wrong.length === 0
    ? [ok(`all ${crdDefinitions.length} are installed and belong to this version`)]
    : wrong;
}

/** @returns whether Shale's own objects can be read at all. */
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

/** What one schema has as properties and the other has not, by path. The API server prunes what it does not know. */
function missingFields(wanted: Schema, found: Schema, path = ''): string[] {
  if (found['x-kubernetes-preserve-unknown-fields'] === true) return [];
  const properties = Object.entries((wanted['properties'] ?? {}) as Record<string, Schema>);
  const known = (found['properties'] ?? {}) as Record<string, Schema>;
  const own = properties.flatMap(([name, schema]) => {
    const at = path === '' ? name : `${path}.${name}`;
    const other = known[name];
    return other === undefined ? [at] : missingFields(schema, other, at);
  });
  const items = wanted['items'] as Schema | undefined;
  return items === undefined
    ? own
    : [...own, ...missingFields(items, (found['items'] ?? {}) as Schema, `${path}[]`)];
}
