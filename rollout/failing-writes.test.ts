import { describe, expect, it } from 'vitest';
import { ApiError, ApiUnreachable } from '../cluster/api-client.ts';
import { REPORT_AFTER } from '../cluster/failure.ts';
import { BusyOperator, nameOfWrite, ROUND } from '../test/fixtures/fleet/busy-operator.ts';
import { sample } from '../test/fixtures/sample.ts';
import { defaultRolloutOptions } from './options.ts';

const WORDS = 'admission webhook "nodes.example.org" denied the request: ask the storage team';

const answer = (status: number, reason: string, details: object = {}) =>
  new ApiError(status, 'the request', { reason, message: WORDS, ...details });

const ANSWERS = {
  403: { kind: 'Refused', error: answer(403, 'Forbidden') },
  409: { kind: 'Conflict', error: answer(409, 'Conflict') },
  422: { kind: 'Refused', error: answer(422, 'Invalid') },
  429: { kind: 'Throttled', error: answer(429, 'TooManyRequests', { details: { retryAfterSeconds: 5 } }) },
  500: { kind: 'Unavailable', error: answer(500, 'InternalError') },
  timeout: { kind: 'Unavailable', error: new ApiUnreachable('the request', new Error(WORDS)) },
} as const;
type Answer = keyof typeof ANSWERS;

/** Where people find the words of the API server, beside an event on the object. */
type Place = 'pool' | 'configuration' | 'kubelet';

/**
 * Every write of the operator's controllers, and where a failure of it is found. A write that is not here is a new one.
 */
const WRITES: Readonly<Record<string, readonly Place[]>> = {
  'patch KubeletConfig: record its name': ['configuration', 'kubelet'],
  'create MachineConfig': ['pool', 'configuration', 'kubelet'],
  'replace KubeletConfig/status': ['configuration'],
  'create MachineConfiguration': ['pool'],
  'replace MachineConfiguration/status': ['pool'],
  'patch MachineConfigPool: target': ['pool', 'configuration'],
  'replace MachineConfigPool/status': ['configuration'],
  'delete MachineConfig': ['pool', 'configuration'],
  'patch MachineConfig: owners': ['pool', 'configuration'],
  'create PoolRevision': ['pool', 'configuration'],
  'delete PoolRevision': ['pool', 'configuration'],
  'create MachineConfigNode': ['pool', 'configuration'],
  'patch MachineConfigNode: certificates': ['pool', 'configuration'],
  'patch MachineConfigNode: pinned images': ['pool', 'configuration'],
  "patch Node: MCO's annotations": ['pool', 'configuration'],
  'patch MachineConfigNode: grant or withdraw': ['pool', 'configuration'],
  'replace MachineConfigNode/status': ['pool', 'configuration'],
  'patch Node: uncordon': ['pool', 'configuration'],
  'delete Lease': ['pool', 'configuration'],
  'create Lease': ['pool', 'configuration'],
  'patch Node: cordon': ['pool', 'configuration'],
  'patch Node: request hooks before': ['pool', 'configuration'],
  'patch Node: remove the startup taint': ['pool', 'configuration'],
  'replace Lease': ['pool', 'configuration'],
  'patch Node: request hooks after': ['pool', 'configuration'],
  'patch MachineConfigNode: assign': ['pool', 'configuration'],
  'evict Pod': ['pool'],
  'patch MachineConfigPool: rollback': ['pool', 'configuration'],
};

/** What ends by itself before it is reported. */
const ENDS: ReadonlySet<string> = new Set([
  // Another has taken the lease over: it is no longer the operator's to release.
  'delete Lease 409',
  // The write that cordons the node has them, too.
  "patch Node: MCO's annotations 409",
]);

/** Rounds in which the operator comes to everything that it ever writes. */
const ALL_ROUNDS = 160;

it('the table has every write', async () => {
  const world = new BusyOperator();
  const writes = new Set<string>();
  world.cluster.trouble = (_name, write) => {
    writes.add(nameOfWrite(write));
    return 'none';
  };
  for (let round = 0; round < ALL_ROUNDS; round += 1) await world.round();
  expect([...writes].toSorted()).toEqual(Object.keys(WRITES).toSorted());
});

/**
 * Lets one write fail for as long as it takes to be reported. @returns what people see then, and once it succeeds
 * again.
 */
async function whileFailing(write: string, { kind, error }: (typeof ANSWERS)[Answer]) {
  const world = new BusyOperator();
  let firstAt: number | undefined;
  world.cluster.trouble = (_name, each) => {
    if (nameOfWrite(each) !== write) return 'none';
    firstAt ??= world.now;
    world.isLeftAlone = true;
    return error;
  };
  const due =
    write === 'evict Pod' ? defaultRolloutOptions.drain.reportAfterSeconds * 1000 : REPORT_AFTER[kind];
  // A lease that can't be renewed is ours until it expires.
  const expires = write === 'replace Lease' ? defaultRolloutOptions.leases.seconds * 1000 : 0;
  // The longest back-off, and a round for the pool to say it.
  const until = due + expires + 80_000 + 2 * ROUND;
  let early = 0;
  for (let round = 0; round < 300 && (firstAt === undefined || world.now - firstAt < until); round += 1) {
    await world.round();
    if (firstAt !== undefined && world.now - ROUND - firstAt < due) early += world.seen(WORDS).events;
  }
  const failing = world.seen(WORDS);
  world.cluster.trouble = () => 'none';
  for (let round = 0; round < 15; round += 1) await world.round();
  return { early, failing, after: world.seen(WORDS) };
}

describe('a write that fails is reported after the time for its kind, and no longer once it succeeds', () => {
  const cases = Object.keys(WRITES).flatMap((write) =>
    (Object.keys(ANSWERS) as `${Answer}`[]).map((status) => ({ write, status })),
  );
  it.each(sample('failing writes', cases, 40))('$write with $status', async ({ write, status }) => {
    const { early, failing, after } = await whileFailing(write, ANSWERS[status]);
    const { events, ...places } = failing;
    const seen = Object.entries(places).flatMap(([place, isThere]) => (isThere ? [place] : []));
    if (ENDS.has(`${write} ${status}`)) {
      expect(seen).toEqual([]);
      return;
    }
    expect(seen.toSorted()).toEqual(WRITES[write]?.toSorted());
    expect(early).toBe(0);
    // One for each object and each step, and none with every try.
    expect(events).toBeGreaterThan(0);
    expect(events).toBeLessThanOrEqual(6);
    expect(after).toEqual({ pool: false, configuration: false, kubelet: false, events: after.events });
  });
});
