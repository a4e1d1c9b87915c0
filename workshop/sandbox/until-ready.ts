import type { Logger } from 'pino';
import { type DaemonSet, DaemonSets, type Deployment, Deployments, Nodes } from '../../api/kubernetes.ts';
import { type MachineConfigPool, MachineConfigPools } from '../../api/machine-config-pool.ts';
import { DAEMON_SET, OPERATOR_DEPLOYMENT } from '../../api/names.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { conditionIsTrue } from '../../cluster/update-object.ts';
import { poolObjects } from './cluster-objects.ts';
import { createWatches, type Look, waitUntil } from './wait-until.ts';

interface ReadyWait {
  /** @returns how many machines did not come up and are not waited for; asked when a Node has changed. */
  readonly down: () => number;
  readonly deadlineMs: number;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/**
 * Waits until every process of Shale's runs and every node has reported that it runs what its pool asks for: a person's
 * next command is about a cluster, not about one that is starting.
 *
 * @throws WaitTimeout that says what is missing; the signal's reason.
 */
export async function untilReady(
  client: ApiClient,
  { down, deadlineMs, log, signal }: ReadyWait,
): Promise<void> {
  const watches = createWatches(client, log, signal);
  try {
    const pools = watches.open(MachineConfigPools);
    const deployments = watches.open(Deployments);
    const daemonSets = watches.open(DaemonSets);
    watches.open(Nodes);
    await watches.synced();
    const look = (): Look<true> => {
      const missing = missingParts({
        pools: pools.list(),
        deployments: deployments.list(),
        daemonSets: daemonSets.list(),
        down: down(),
      });
      return missing.length === 0 ? { met: true } : { seen: missing.join(', ') };
    };
    await waitUntil({ what: 'the cluster is ready', changes: watches.changes, look, deadlineMs, signal });
  } finally {
    await watches.close();
  }
}

interface Parts {
  readonly pools: readonly MachineConfigPool[];
  readonly deployments: readonly Deployment[];
  readonly daemonSets: readonly DaemonSet[];
  /** Machines that did not come up. */
  readonly down: number;
}

/** @returns what of a ready cluster is missing, for a person. */
export function missingParts({ pools, deployments, daemonSets, down }: Parts): string[] {
  const operator = deployments.find(({ metadata }) => metadata.name === OPERATOR_DEPLOYMENT)?.status;
  const daemons = daemonSets.find(({ metadata }) => metadata.name === DAEMON_SET)?.status;
  const isOperatorThere = (operator?.availableReplicas ?? 0) > 0;
  const areDaemonsThere = (daemons?.numberReady ?? 0) >= (daemons?.desiredNumberScheduled ?? down + 1) - down;
  return [
    ...(isOperatorThere ? [] : ['the operator is not running']),
    ...(areDaemonsThere ? [] : ['not all node daemons are running']),
    ...poolObjects()
      .map(({ metadata }) => metadata.name)
      .filter(
        (name) =>
          !isUpdated(
            pools.find(({ metadata }) => metadata.name === name),
            down,
          ),
      )
      .map((name) => `pool ${name} is not Updated`),
  ];
}

/** Of what it asks for now: before the first rendering there is nothing that its nodes could run. */
function isUpdated(pool: MachineConfigPool | undefined, down: number): boolean {
  if (pool?.spec.configuration === undefined) return false;
  const { metadata, status } = pool;
  const isOfNow = metadata.generation === undefined || status?.observedGeneration === metadata.generation;
  const { machineCount = 0, updatedMachineCount = 0 } = status ?? {};
  const hasAllOthers = down > 0 && machineCount > 0 && machineCount - updatedMachineCount <= down;
  return isOfNow && (hasAllOthers || conditionIsTrue(status?.conditions, 'Updated'));
}
