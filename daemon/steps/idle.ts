import path from 'node:path';
import type { FailureReason } from '../../api/machine-config-node.ts';
import { nodePaths } from '../../api/names.ts';
import { endForce, forceFileIn, isForced } from '../content/drift/drift.ts';
import { watchedNames } from '../content/drift/drift-watch.ts';
import { verifyWithLabels } from '../content/drift/label-drift.ts';
import { managedContent } from '../content/managed-content.ts';
import { imagesOfPolicy } from '../os/image-policy/keep-image-policy.ts';
import { writeLastUpdate } from '../records/last-update.ts';
import { readLeftOut, writeLeftOut } from '../records/left-out.ts';
import { settleState } from './end-update.ts';
import { policeImages } from './image-policy.ts';
import { type NodeDrift, nodeDrift } from './node-drift.ts';
import { settleNextBoot } from './prepare-boot.ts';
import { restoreChanged } from './repair.ts';
import type { Observation } from './step.ts';
import {
  again,
  publish,
  recordEvent,
  recordWarning,
  type StepContext,
  type StepOutcome,
  untilChanged,
} from './step-context.ts';

/** The node runs its target: keeps it that way. */
export async function beIdle(context: StepContext, observation: Observation): Promise<StepOutcome> {
  const { memory, ports, signal } = context;
  memory.prepared = undefined;
  const running = JSON.stringify([
    observation.current?.config,
    observation.bootID,
    observation.lastUpdate?.finishedAt,
  ]);
  // What was left over by an update is put in order once nobody else holds the node.
  const isSettled = memory.settledFor === running || observation.spec.heldBy !== undefined;
  // Another deployment has a policy of its own.
  if (!isSettled) await policeImages(context, observation, await imagesOfPolicy(ports.host.root));
  const drift = await detectDrift(context, observation);
  const { lastUpdate } = observation;
  if (drift === undefined && isOfContent(lastUpdate?.reason) && lastUpdate !== undefined) {
    await writeLeftOut(ports.host.root, undefined);
    const { message: _why, reason: _reason, ...record } = lastUpdate;
    await writeLastUpdate(ports.host.root, { ...record, result: 'Succeeded' });
    return again;
  }
  await publish(
    context,
    observation,
    drift === undefined ? { kind: 'updated' } : { kind: 'drifted', ...drift },
  );
  if (!isSettled) {
    await settleNextBoot(ports.backend, observation.current, signal);
    await ports.backend.cleanup(signal);
    await settleState(context);
    memory.settledFor = running;
  }
  return untilChanged;
}

/** Whether an update failed only because something is not on the disk as its config has it. */
function isOfContent(reason: FailureReason | undefined): boolean {
  return reason === 'ConfigDrift' || reason === 'UpdateIncomplete';
}

/**
 * Checks that what the config names is on the disk as it was rendered, in either mode, and is woken when that changes
 * (MCO, ConfigDriftMonitor); and that the node was booted with its kernel arguments. What no config names is the
 * admin's.
 *
 * An admin who creates MCO's force file on the node permits overwriting: the content is restored and the file is
 * removed. It changes no kernel arguments.
 *
 * @returns undefined where nothing differs. @throws the file system's errors.
 */
async function detectDrift(context: StepContext, observation: Observation): Promise<NodeDrift | undefined> {
  const { current } = observation;
  const { driftWatch, memory, ports, signal } = context;
  const { root } = ports.host;
  const content = await managedContent(root, current);
  if (content === undefined) {
    driftWatch.stop();
    memory.drift = undefined;
    return undefined;
  }
  const names = new Map(await watchedNames({ root }, content));
  names.set(path.dirname(forceFileIn(root)), new Set([path.basename(nodePaths.forceFile)]));
  driftWatch.watch(names);
  if (await isForced(root)) {
    await restoreChanged(context, content, `${nodePaths.forceFile} exists`);
    await endForce(root);
  }
  const leftOut = await readLeftOut(root);
  const drifts = await verifyWithLabels(ports, content, signal);
  const drift = nodeDrift({ current, content, drifts, leftOut }, observation);
  const why = drift?.reason === 'ConfigDrift' ? drift.why : undefined;
  if (why !== memory.drift) {
    if (why !== undefined) {
      context.telemetry.metrics.driftFound();
      recordWarning(context, 'ConfigDriftDetected', why);
    } else if (memory.drift !== undefined) {
      recordEvent(context, 'ConfigDriftEnded', 'The node matches its config again');
    }
    memory.drift = why;
  }
  return drift;
}
