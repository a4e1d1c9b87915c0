import { setTimeout as delay } from 'node:timers/promises';
import { formatDuration } from '../../api/duration.ts';
import { annotations } from '../../api/names.ts';
import { acquireLease } from '../../cluster/lease.ts';
import { drainRetryAfter, drainStep, formatDrain } from '../../rollout/act/drain-step.ts';
import { leaseNameOf } from '../../rollout/node-leases.ts';
import { defaultRolloutOptions } from '../../rollout/options.ts';
import { retryUntil } from '../command-line/cluster-access.ts';
import { requireYes } from '../command-line/confirm.ts';
import { CommandError } from '../command-line/exit-codes.ts';
import { print, progressLines } from '../command-line/output.ts';
import { decideStart, type StartDecision } from './decide-start.ts';
import {
  endOfOthers,
  flagOf,
  flagText,
  maintenanceHolder,
  type NodeAccess,
  observeNode,
  patchCurrentNode,
} from './node-access.ts';
import { daemonOn, powerOffNode } from './power-off.ts';

/** Flags of `shale maintenance start`. */
export interface StartFlags {
  readonly reason: string;
  /** Continue even if a rollout is in progress. */
  readonly yes?: boolean;
  /** Wait for the node's update to end. */
  readonly wait?: boolean;
  readonly drain: boolean;
  /** Power the machine off once it is drained. */
  readonly powerOff?: boolean;
  /** Also evict pods that no controller manages. */
  readonly force?: boolean;
  /** ms for the wait and the drain together. */
  readonly timeout: number;
}

/** `until`: ms since the epoch. */
type StartRequest = StartFlags & { readonly by: string; readonly until: number };

/** ms between two checks of a node that the command waits for. */
const LOOK_AGAIN_MS = 2_000;

/**
 * Takes a node out of service: flag, lease, cordon, drain. Each step may be done already, so that a start that was
 * interrupted can be repeated.
 *
 * @throws {CommandError} when the node is not available or not drained in time; completed steps are not undone.
 */
export async function startMaintenance(access: NodeAccess, request: StartRequest): Promise<void> {
  const deadline = performance.now() + request.timeout;
  const holder = maintenanceHolder(request.by);
  if (request.powerOff === true) await daemonOn(access);
  // With both flags the rollout skips the node from now on, and the command waits only for an update that has started.
  if (request.yes === true && request.wait === true) await flag(access, request);
  await untilFree(access, request, holder, deadline);
  await flag(access, request);
  await takeLease(access, request, holder);
  await cordon(access);
  print(`node ${access.node}: in maintenance until ${new Date(request.until).toISOString()}, and cordoned`);
  if (request.drain) await drain(access, request, deadline);
  if (request.powerOff === true) return powerOffNode(access, { ...request, holder, deadline });
  if (request.drain)
    print(`node ${access.node}: drained; when you are done, run: shale maintenance end ${access.node}`);
}

async function untilFree(
  access: NodeAccess,
  request: StartRequest,
  holder: string,
  deadline: number,
): Promise<void> {
  const line = progressLines();
  const retry = { deadline, signal: access.signal, show: (text: string) => line.show(text) };
  try {
    for (;;) {
      const cluster = await (request.wait === true
        ? retryUntil(retry, () => observeNode(access))
        : observeNode(access));
      const decision = decideStart(cluster, holder, Date.now());
      if (decision.kind === 'go' || (decision.kind === 'confirm' && request.yes === true)) return;
      if (request.wait !== true) return await requireAccepted(decision, access);
      if (performance.now() >= deadline) {
        throw new CommandError(
          `node ${access.node}: not available after ${formatDuration(request.timeout)}: ${decision.why}`,
        );
      }
      line.show(`waiting for node ${access.node}: ${decision.why}`);
      await delay(LOOK_AGAIN_MS, undefined, { signal: access.signal });
    }
  } finally {
    line.end();
  }
}

/** @throws {CommandError} when the start is blocked, or the user does not confirm it. */
async function requireAccepted(
  decision: Exclude<StartDecision, { kind: 'go' }>,
  { node, signal }: NodeAccess,
): Promise<void> {
  const why = `node ${node}: ${decision.why}`;
  if (decision.kind === 'blocked') throw new CommandError(`${why}; use --wait to wait for it`);
  const refusal = `${why}; use --yes to continue or --wait to wait for its update`;
  await requireYes(`${why}. Continue?`, refusal, signal);
}

/** Keeps what an earlier start recorded about the cordon. */
async function flag(access: NodeAccess, { by, reason, until }: StartRequest): Promise<void> {
  await patchCurrentNode(access, (node) => {
    const { uncordon, poweredOff } = flagOf(node) ?? {};
    const end = new Date(until).toISOString();
    const text = flagText({ reason, by, until: end, uncordon, poweredOff });
    return { metadata: { annotations: { [annotations.plannedMaintenance]: text } } };
  });
}

/** No process renews the lease during a maintenance, so it is acquired for the whole time. */
async function takeLease(access: NodeAccess, { until, reason }: StartRequest, holder: string): Promise<void> {
  const outcome = await acquireLease(
    access.client,
    {
      namespace: access.leaseNamespace,
      name: leaseNameOf(access.node),
      holder,
      durationSeconds: Math.ceil((until - Date.now()) / 1000),
      reason,
    },
    access.signal,
    { endOf: endOfOthers },
  );
  if (outcome.acquired) return;
  throw new CommandError(
    `node ${access.node}: flagged for maintenance, but ${outcome.holder} acquired its lease; run this again with --wait`,
  );
}

async function cordon(access: NodeAccess): Promise<void> {
  await patchCurrentNode(access, (node) => {
    const current = flagOf(node) ?? { reason: '', by: '' };
    const uncordon = current.uncordon ?? node.spec?.unschedulable !== true;
    const text = flagText({ ...current, uncordon });
    return {
      metadata: { annotations: { [annotations.plannedMaintenance]: text } },
      spec: { unschedulable: true },
    };
  });
}

async function drain(access: NodeAccess, request: StartRequest, deadline: number): Promise<void> {
  const options = { ...defaultRolloutOptions.drain, evictUnmanagedPods: request.force === true };
  const started = performance.now();
  const times = { cordonedAt: Date.now() };
  const line = progressLines();
  const retry = { deadline, signal: access.signal, show: (text: string) => line.show(text) };
  try {
    for (;;) {
      // The lease has expired too, and another holder may have acquired it.
      if (Date.now() >= request.until)
        throw new CommandError(`node ${access.node}: the maintenance has expired`);
      const progress = await retryUntil(retry, () =>
        drainStep(access.client, access.node, options, access.signal, times),
      );
      if (progress.kind === 'drained') break;
      const state = `node ${access.node} ${formatDrain(progress)}`;
      const now = performance.now();
      if (now >= deadline) {
        throw new CommandError(
          `${state}; not drained after ${formatDuration(request.timeout)}: run this again to continue, or end the maintenance`,
        );
      }
      line.show(state);
      const wait = Math.min(drainRetryAfter(now - started, options), deadline - now);
      await delay(wait, undefined, { signal: access.signal });
    }
  } finally {
    line.end();
  }
}
