import { setTimeout as delay } from 'node:timers/promises';
import type { PowerOffRequest } from '../../api/annotation-requests.ts';
import { leaseObstacle } from './await-grant.ts';
import { again, recordEvent, type StepContext, type StepOutcome } from './step-context.ts';

/** A machine that was asked to power off and still runs after this is asked again. */
const POWER_OFF_DEADLINE_MS = 600_000;
const LEASE_RETRY_MS = 5_000;

/**
 * Powers the machine off for a maintenance, as long as that has the node's lease: `shale maintenance start` has drained
 * the node and flagged it as powered off before it requests this.
 *
 * @throws {ApiError} when the lease can't be read; what systemd refuses. The request is carried out again then.
 */
export async function powerOff(
  context: StepContext,
  { by, reason, leaseHolder }: PowerOffRequest,
): Promise<StepOutcome> {
  const { ports, telemetry, signal } = context;
  const obstacle = await leaseObstacle(context, leaseHolder);
  if (obstacle !== undefined) {
    telemetry.log.info({ why: obstacle }, 'Not powering off');
    return { kind: 'wait', ms: LEASE_RETRY_MS };
  }
  const why = `${by || 'somebody'} requested it${reason === '' ? '' : `: ${reason}`}`;
  recordEvent(context, 'PoweringOff', `Powering off: ${why}`);
  await telemetry.tracer.flush();
  await ports.host.powerOff(`powering off: ${why}`, signal);
  await delay(POWER_OFF_DEADLINE_MS, undefined, { signal });
  return again;
}
