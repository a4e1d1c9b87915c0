import path from 'node:path';
import { nodePaths } from '../../api/names.ts';
import { imagesOfPolicy } from '../os/image-policy/keep-image-policy.ts';
import { writeLastUpdate } from '../records/last-update.ts';
import { endForce, forceFileIn, isForced } from '../standard/drift.ts';
import { watchedNames } from '../standard/drift-watch.ts';
import { managedContent } from '../standard/managed-content.ts';
import { settleState } from './end-update.ts';
import { policeImages } from './image-policy.ts';
import { settleNextBoot } from './next-boot.ts';
import { nodeDrift } from './node-drift.ts';
import { putBack } from './put-back.ts';
import type { Observation } from './step.ts';
import {
  again,
  normal,
  publish,
  type StepContext,
  type StepOutcome,
  untilChanged,
  warning,
} from './step-context.ts';
import { comparedHost } from './update-context.ts';

/** The node runs its target: keeps it that way. */
export async function beIdle(context: StepContext, observation: Observation): Promise<StepOutcome> {
  const { memory, ports, signal } = context;
  memory.prepared = undefined;
  const running = JSON.stringify([
    observation.current?.config,
    observation.bootID,
    observation.lastUpdate?.finishedAt,
  ]);
  const isSettled = memory.settledFor === running;
  // Another deployment has a policy of its own.
  if (!isSettled) await policeImages(context, observation, await imagesOfPolicy(ports.host.root));
  const why = await detectDrift(context, observation);
  const { lastUpdate } = observation;
  if (why === undefined && lastUpdate?.reason === 'ConfigDrift') {
    const { message: _why, reason: _reason, ...record } = lastUpdate;
    await writeLastUpdate(ports.host.root, { ...record, result: 'Succeeded' });
    return again;
  }
  await publish(context, observation, why === undefined ? { kind: 'updated' } : { kind: 'drifted', why });
  if (!isSettled) {
    await settleNextBoot(ports.backend, observation.current, signal);
    await ports.backend.cleanup(signal);
    await settleState(context);
    memory.settledFor = running;
  }
  return untilChanged;
}

/**
 * Checks that what the config names is on the disk as it was rendered, in either mode, and is woken when that changes (MCO,
 * ConfigDriftMonitor); and that the node was booted with its kernel arguments. What no config names is the admin's.
 *
 * An admin who creates MCO's force file on the node permits overwriting: the content is put back and the file is
 * removed. It changes no kernel arguments.
 *
 * @returns what differs, as text; undefined where nothing does.
 * @throws the file system's errors.
 */
async function detectDrift(context: StepContext, observation: Observation): Promise<string | undefined> {
  const { current } = observation;
  const { driftWatch, memory, ports, signal } = context;
  const { root } = ports.host;
  const content = await managedContent(root, current);
  if (content === undefined) {
    driftWatch.disarm();
    memory.drift = undefined;
    return undefined;
  }
  const { config, delivery } = content;
  const names = new Map(await watchedNames({ root }, config, delivery));
  names.set(path.dirname(forceFileIn(root)), new Set([path.basename(nodePaths.forceFile)]));
  driftWatch.arm(names);
  if (await isForced(root)) {
    await putBack(context, content, `${nodePaths.forceFile} exists`);
    await endForce(root);
  }
  const why = await nodeDrift(comparedHost(ports), { current, content }, observation, signal);
  if (why !== memory.drift) {
    if (why !== undefined) {
      context.metrics.driftFound();
      warning(context, 'ConfigDriftDetected', why);
    } else if (memory.drift !== undefined) {
      normal(context, 'ConfigDriftEnded', 'The node matches its config again');
    }
    memory.drift = why;
  }
  return why;
}
