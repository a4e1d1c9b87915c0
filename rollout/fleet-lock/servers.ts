import { z } from 'zod';
import type { FleetLock } from '../../api/pool-settings/values.ts';
import type { HoldState } from '../gates/hold.ts';
import { askOutside, type EndpointSettings, unexpectedAnswer } from '../outside-endpoint.ts';

/** A node's slot of a lock service. */
export interface Slot extends FleetLock {
  readonly id: string;
}

/** Asks lock services; both requests do no harm twice, and the second one none to who has no slot. */
export interface FleetLockServers {
  /**
   * Takes a slot, or finds that the node has it already.
   *
   * @returns `holds` where the service refuses one, which is because none is free, or its group is unknown.
   * @throws Error that names the service, when it is unknown whether the node has the slot.
   */
  take(slot: Slot, signal: AbortSignal): Promise<HoldState>;
  /** Gives a slot back. @throws Error that names the service. */
  giveBack(slot: Slot, signal: AbortSignal): Promise<void>;
}

/** The protocol's way to say that somebody meant the request, and was not redirected to it. */
const HEADERS = { 'fleet-lock-protocol': 'true' };
/**
 * A service that refuses says so by this, or by an error of the protocol under any status: airlock answers 500, and
 * poseidon/fleetlock 423.
 */
const CONFLICT = 409;
/** poseidon/fleetlock, internal/encode.go: another node has the only slot of the group. */
const LOCK_HELD = 'lock_held';
/** The error of the protocol. A service says `value` to people. */
const Refused = z.object({ kind: z.string(), value: z.string() });
/** Characters of another's text in a message. */
const LONGEST = 200;

/**
 * @param allowed the services that pools may name (`--fleetlock-url`): who edits a pool must not have the operator send
 *   requests to anybody else.
 */
export function fleetLockServers(
  allowed: readonly string[],
  files: Omit<EndpointSettings, 'url'>,
): FleetLockServers {
  const ask = async <T>(
    path: string,
    { url, group, id }: Slot,
    signal: AbortSignal,
    read: (status: number | undefined, body: unknown) => T,
  ) => {
    if (!allowed.includes(url)) throw new Error(`the operator has no --fleetlock-url ${url}`);
    const body = { client_params: { group, id } };
    const request = { method: 'POST', path, headers: HEADERS, body, signal } as const;
    return askOutside('FleetLock', { url: new URL(url), ...files }, request, read);
  };
  return {
    take: (slot, signal) =>
      ask('/v1/pre-reboot', slot, signal, (status, body) => {
        if (status === 200) return { kind: 'clear' };
        if (status !== CONFLICT && !Refused.safeParse(body).success) throw unexpectedAnswer(status, body);
        const { host } = new URL(slot.url);
        return { kind: 'holds', why: `${host} refuses one of group ${slot.group}: ${reasonIn(body)}` };
      }),
    giveBack: (slot, signal) =>
      ask('/v1/steady-state', slot, signal, (status, body) => {
        if (status !== 200 && !isAnothers(body)) throw failure(status, body);
      }),
  };
}

/** poseidon/fleetlock refuses to release what the node doesn't have; airlock is content with that. */
function isAnothers(body: unknown): boolean {
  return Refused.safeParse(body).data?.kind === LOCK_HELD;
}

function failure(status: number | undefined, body: unknown): Error {
  return Refused.safeParse(body).success
    ? new Error(`it answers ${status}: ${reasonIn(body)}`)
    : unexpectedAnswer(status, body);
}

function reasonIn(body: unknown): string {
  const refused = Refused.safeParse(body);
  return refused.success ? refused.data.value.slice(0, LONGEST) : 'no reason given';
}
