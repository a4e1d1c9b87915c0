import { setTimeout as delay } from 'node:timers/promises';
import { formatPowerOffRequest } from '../../api/annotation-requests.ts';
import { formatDuration } from '../../api/duration.ts';
import { type MachineConfigNode, MachineConfigNodes } from '../../api/machine-config-node.ts';
import { annotations } from '../../api/names.ts';
import { toSeconds } from '../../api/object.ts';
import { retryOnConflict } from '../../cluster/update-object.ts';
import { isReady } from '../../rollout/pools/node-availability.ts';
import { CommandError } from '../command-line/exit-codes.ts';
import { print, progressLines } from '../command-line/output.ts';
import { annotate, managedNode } from '../node-request.ts';
import { flagOf, flagText, getNode, type NodeAccess, patchCurrentNode } from './node-access.ts';

interface PowerOff {
  readonly by: string;
  readonly reason: string;
  /** Of the node's lease, which the daemon compares. */
  readonly holder: string;
  readonly timeout: number;
  /** As `performance.now()` has it. */
  readonly deadline: number;
}

/** ms between two looks at the node. */
const LOOK_AGAIN_MS = 2_000;

/**
 * @returns the object of the daemon that is to power the machine off, with the boot that it is in.
 * @throws {CommandError} before anything was changed, where there is no such daemon.
 */
export async function daemonOn(
  access: NodeAccess,
): Promise<{ readonly object: MachineConfigNode; readonly bootID: string }> {
  const { client, node, signal } = access;
  const object = await managedNode(client, node, signal);
  const bootID = object.status?.bootID;
  if (bootID === undefined) throw new CommandError(`node ${node}: its daemon has not reported yet`);
  return { object, bootID };
}

/**
 * Has the daemon of a drained node power the machine off. The node is flagged as powered off first, so that neither a
 * rollout nor anybody who reads the flag takes it for one that failed.
 *
 * @throws {CommandError} when it still runs at the deadline; the request stays.
 */
export async function powerOffNode(access: NodeAccess, request: PowerOff): Promise<void> {
  const { client, node, signal } = access;
  const { by, reason, holder: leaseHolder, timeout, deadline } = request;
  await patchCurrentNode(access, (current) => {
    const since = toSeconds(new Date());
    const flag = flagText({ ...(flagOf(current) ?? { reason, by }), poweredOff: true });
    const off = JSON.stringify({ reason, by, since });
    return {
      metadata: { annotations: { [annotations.poweredOff]: off, [annotations.plannedMaintenance]: flag } },
    };
  });
  await retryOnConflict(async () => {
    const { object, bootID } = await daemonOn(access);
    const text = formatPowerOffRequest({ bootID, by, reason, leaseHolder, at: toSeconds(new Date()) });
    await annotate(client, MachineConfigNodes, object, { [annotations.powerOff]: text }, signal);
  });
  const line = progressLines();
  try {
    while (isReady(await getNode(access))) {
      if (performance.now() >= deadline) {
        throw new CommandError(
          `node ${node}: still runs after ${formatDuration(timeout)}; see the events of its MachineConfigNode: kubectl describe mcn ${node}`,
        );
      }
      line.show(`node ${node}: waiting until it is off`);
      await delay(LOOK_AGAIN_MS, undefined, { signal });
    }
  } finally {
    line.end();
  }
  print(`node ${node}: powered off; once it runs again, run: shale maintenance end ${node}`);
}
