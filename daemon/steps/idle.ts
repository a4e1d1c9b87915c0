import path from 'node:path';
import { nodePaths } from '../../api/names.ts';
import type { NodeConfig } from '../../machineconfig/node-config.ts';
import type { Current } from '../records/current.ts';
import { nodeConfigOf } from '../records/rendered-config.ts';
import { driftInWords, watchedNames } from '../standard/drift.ts';
import { endForce, forceFileIn, isForced } from '../standard/force-file.ts';
import { verifyConfig } from '../standard/verify-config.ts';
import { writeConfig } from '../standard/write-config.ts';
import { writeTarget } from './apply-config.ts';
import { type Daemon, normal, warning } from './step-context.ts';

/** systemd reads its units from there: it is told of what is put back. */
const UNITS = '/etc/systemd/system/';

/**
 * Looks whether the disk of a node in standard mode is as Shale left it, and is woken when that changes (MCO,
 * ConfigDriftMonitor). In layered mode what an admin edits in /etc is theirs, as ostree has it.
 *
 * An admin who creates MCO's force file on the node gives leave to overwrite: the content is put back and the file is
 * removed. Nothing is reloaded but systemd's own units, and nothing reboots: what a service has read since, its admin
 * knows (MCO reboots the node).
 *
 * @returns what differs, in words; undefined where nothing does.
 * @throws the file system's errors.
 */
export async function watchOver(daemon: Daemon, current: Current | undefined): Promise<string | undefined> {
  const { driftWatch, memory, ports } = daemon;
  if (current?.mode !== 'Standard') {
    driftWatch.disarm();
    memory.drift = undefined;
    return undefined;
  }
  const { root } = ports.host;
  const config = nodeConfigOf(current.rendered);
  const names = new Map(await watchedNames({ root }, config));
  names.set(path.dirname(forceFileIn(root)), new Set([path.basename(nodePaths.forceFile)]));
  driftWatch.arm(names);
  if (await isForced(root)) {
    await putBack(daemon, config);
    await endForce(root);
  }
  const drifts = await verifyConfig(root, config, { signal: daemon.signal });
  const why = drifts.length === 0 ? undefined : driftInWords(drifts, nodePaths.forceFile);
  if (why !== memory.drift) {
    if (why !== undefined) {
      daemon.metrics.driftFound();
      warning(daemon, 'ConfigDriftDetected', why);
    } else if (memory.drift !== undefined) {
      normal(daemon, 'ConfigDriftEnded', 'the node is as its config says');
    }
    memory.drift = why;
  }
  return why;
}

async function putBack(daemon: Daemon, config: NodeConfig): Promise<void> {
  const { ports, signal } = daemon;
  const { written, removed } = await writeConfig(
    writeTarget(ports),
    { from: config, to: config, force: true },
    { signal },
  );
  const paths = [...written, ...removed];
  if (paths.some((name) => name.startsWith(UNITS))) await ports.services.daemonReload(signal);
  normal(
    daemon,
    'ConfigPutBack',
    paths.length === 0
      ? `${nodePaths.forceFile} is there, and nothing differs from ${config.name}`
      : `by leave of ${nodePaths.forceFile}, as ${config.name} has it: ${paths.join(', ')}. Services that have read these since are not restarted`,
  );
}
