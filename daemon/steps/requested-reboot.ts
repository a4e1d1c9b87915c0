import { stat } from 'node:fs/promises';
import { uptime } from 'node:os';
import type { RebootRequest } from '../../api/annotation-requests.ts';
import { present } from '../../api/present.ts';
import { formatDrifts } from '../content/drift/drift.ts';
import { verifyWithLabels } from '../content/drift/label-drift.ts';
import { managedContent } from '../content/managed-content.ts';
import { ignoreMissing } from '../files/tree-entry.ts';
import type { Current } from '../records/current.ts';
import { formatAwaitedGrant } from './await-grant.ts';
import type { Observation } from './step.ts';
import { publish, type StepContext, type StepOutcome } from './step-context.ts';
import { imageOfTarget, type Target, type Update } from './update.ts';

/*
 * A reboot that a person or a file on the host requests is an update to what the node runs already: it waits for the
 * same grant, is drained and guarded by the boot watchdog, and is verified after the boot. So every gate, window and
 * limit of a rollout holds for it.
 */

/** What requests a reboot of the node. */
interface RebootRequests {
  /** Of the node's MachineConfigNode, whether or not the node has rebooted since. */
  readonly request: RebootRequest | undefined;
  /** The file that the pool names. */
  readonly sentinel: string | undefined;
}

/**
 * @param bootID of the running boot. @param since the start of the last update that ended in this boot, as RFC 3339.
 * @returns why the node is to reboot, as a clause; undefined where nothing requests it.
 */
export async function rebootRequestedBy(
  root: string,
  { request, sentinel }: RebootRequests,
  { bootID, since }: { readonly bootID: string; readonly since: string | undefined },
): Promise<string | undefined> {
  if (request?.bootID === bootID) {
    const why = request.reason === '' ? '' : `: ${request.reason}`;
    return `${request.by || 'somebody'} requested a reboot${why}`;
  }
  if (sentinel === undefined) return undefined;
  const found = await stat(`${root}${withoutLink(sentinel)}`).catch(ignoreMissing);
  if (found === undefined) return undefined;
  const appeared = Math.max(found.mtimeMs, found.ctimeMs);
  // A file that outlives the boot would have the node reboot for ever.
  const isOfThisBoot = appeared > bootedAt() && (since === undefined || appeared > Date.parse(since));
  return isOfThisBoot ? `${sentinel} exists` : undefined;
}

/** /var/run is a link to /run (FHS 3.0, 5.13), which would lead out of the host's root as the daemon sees it. */
function withoutLink(file: string): string {
  return file.replace(/^\/var\/run\//, '/run/');
}

function bootedAt(): number {
  return Date.now() - uptime() * 1000;
}

/** @returns the reboot as an update to what the node runs. @param why a clause, for the plan and the event. */
export function rebootUpdate(target: Target, current: Current, why: string): Update {
  const image = imageOfTarget(target);
  const plan = { config: target.config, ...present({ image }), staged: true, causes: [], source: why };
  return { plan: { ...plan, actions: [{ type: 'Reboot' }], requested: true }, next: current };
}

/**
 * Waits for the grant. What was changed by hand is reported first: the reboot would take the change along or be refused
 * once the node is drained.
 */
export async function awaitReboot(
  context: StepContext,
  { plan }: Update,
  observation: Observation,
): Promise<StepOutcome> {
  const { ports, signal } = context;
  const content = await managedContent(ports.host.root, observation.current);
  const drifts = await verifyWithLabels(ports, content, signal);
  if (drifts.length > 0) {
    const why = `${formatDrifts(drifts)}; the requested reboot waits for that`;
    await publish(context, observation, { kind: 'drifted', why, reason: 'ConfigDrift', byHand: drifts });
  } else {
    const why = `${formatAwaitedGrant(plan)}: ${plan.source}`;
    await publish(context, observation, { kind: 'waiting', plan, why });
  }
  return { kind: 'wait', ms: RECHECK_MS };
}

/** Until a change by hand, or a sentinel that is gone, is noticed. */
const RECHECK_MS = 60_000;
