import { emptyNodeConfig } from '../../machineconfig/empty-config.ts';
import { type Current, imageOf } from '../records/current.ts';
import { nodeConfigOf } from '../records/rendered-config.ts';
import { writeConfig } from '../standard/write-config.ts';
import { applyConfig, writeTarget } from './apply-config.ts';
import { makeNextBoot } from './reboot-into.ts';
import type { UpdateContext } from './update-context.ts';

/**
 * Takes back what standard mode has written to the running root, where the deployment of before is booted again.
 *
 * @param context its `current` is what the disk has.
 */
export async function takeBackFiles(
  context: UpdateContext,
  previous: Extract<Current, { mode: 'Standard' }>,
): Promise<void> {
  await applyConfig(context, previous).apply();
}

/**
 * Makes what a node ran before its last update the next boot. What it booted then is on the disk still, so no registry is
 * asked; only of an image that was applied live and never booted bootc and rpm-ostree may have kept nothing.
 *
 * @param context its `current` is what the node is to leave. @param previous what it ran before; undefined on a node that
 *   Shale had not configured then.
 */
export async function makePreviousNextBoot(
  context: UpdateContext,
  previous: Current | undefined,
): Promise<void> {
  if (previous !== undefined && imageOf(previous) !== undefined) {
    // The way back is an update like any other.
    return makeNextBoot(context, { next: previous });
  }
  const { ports, signal } = context;
  const { root } = ports.host;
  await ports.backend.rollback(signal);
  if (previous?.mode !== 'Standard') return;
  const { staged } = await ports.backend.status(signal);
  if (staged === undefined) return;
  // The deployment's /etc was merged from one whose image had the config's files in it.
  await writeConfig(
    { ...writeTarget(ports), root: staged.root, varRoot: root },
    { from: emptyNodeConfig, to: nodeConfigOf(previous.rendered), force: true },
    { signal },
  );
}
