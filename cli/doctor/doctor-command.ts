import { Command } from 'commander';
import { CustomResourceDefinitions, DaemonSets, Leases } from '../../api/kubernetes.ts';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import { DAEMON_SET, OPERATOR_DEPLOYMENT } from '../../api/names.ts';
import { type ApiClient, ApiError } from '../../cluster/api-client.ts';
import { detectOtherOperator } from '../../rollout/other-operator.ts';
import { CommandError } from '../exit-codes.ts';
import {
  type ClusterFlags,
  connectionOf,
  readAll,
  withClusterFlags,
  withLeaseNamespace,
} from '../live-objects.ts';
import { observeCluster, type Places } from '../observe/cluster-watch.ts';
import type { ObservedCluster } from '../observe/observed-cluster.ts';
import { onCluster } from '../on-cluster.ts';
import { DoctorOutput } from '../output-schemas.ts';
import { outputFlag, print, printAs, TABLE_FORMATS } from '../print.ts';
import { judgeNodes, judgeProcesses } from './check-cluster.ts';
import { judgeContacts } from './check-contacts.ts';
import { areServed, judgeDefinitions } from './check-definitions.ts';
import { checkPermissions } from './check-permissions.ts';
import { checkRegistries } from './check-registries.ts';
import { askServer, judgeLeaseTimes, judgeServer } from './check-server.ts';
import { type Finding, findings, formatFindings } from './finding.ts';

interface DoctorFlags extends ClusterFlags {
  readonly leaseNamespace: string;
  readonly output: string;
}

/** Kubelets renew their leases here (kubernetes.io, "Leases", node heartbeats). */
const KUBELET_LEASES = 'kube-node-lease';

/** `shale doctor`: whether a cluster is fit for Shale, and what to mend. */
export function doctorCommand(): Command {
  const command = new Command('doctor');
  return withLeaseNamespace(withClusterFlags(command))
    .addOption(outputFlag(...TABLE_FORMATS))
    .action((flags: DoctorFlags) =>
      onCluster(flags, async (client, signal) => {
        const server = await askServer(await connectionOf(flags), signal);
        const found = [...judgeServer(server), ...(await examine(client, flags, server.time, signal))];
        if (flags.output === 'table') print(formatFindings(found));
        else printAs(flags.output, DoctorOutput, found);
        const failures = found.filter(({ level }) => level === 'failure').length;
        if (failures > 0) throw new CommandError(`${failures} of ${found.length} checks failed`);
      }),
    );
}

async function examine(
  client: ApiClient,
  places: Places,
  now: number,
  signal: AbortSignal,
): Promise<Finding[]> {
  const definitions = await readAll(client, CustomResourceDefinitions, { signal });
  const other = await detectOtherOperator(client, signal);
  const { failure, warning } = findings('other operators');
  const general = [
    ...judgeDefinitions(definitions),
    ...(other === undefined ? [] : [failure(other, 'remove one of the two: they would undo each other')]),
    ...(await checkPermissions(client, places, signal)),
    ...judgeLeaseTimes(await leaseTimes(client, places.namespace, signal), now),
  ];
  if (!areServed(definitions)) {
    return [
      ...general,
      {
        ...warning('pools, nodes and registries were not looked at', 'install the CRDs first'),
        check: 'nodes',
      },
    ];
  }
  const seen = await observeCluster(client, places, signal);
  const { namespace } = places;
  const daemons = await client.find(DaemonSets, DAEMON_SET, { namespace, signal });
  return [
    ...general,
    ...judgeProcesses(seen, daemons, namespace),
    ...judgeNodes(seen, now),
    ...judgeContacts(seen, now),
    ...(await checkRegistries(client, namespace, seen, await baseImages(client, seen, signal), signal)),
  ];
}

/** Whoever may not read them still gets the rest. */
async function leaseTimes(client: ApiClient, namespace: string, signal: AbortSignal) {
  try {
    const [operator, kubelets] = await Promise.all([
      client.find(Leases, OPERATOR_DEPLOYMENT, { namespace, signal }),
      client.list(Leases, { namespace: KUBELET_LEASES, signal }),
    ]);
    return [
      ...(operator === undefined ? [] : [{ of: 'the operator', renewTime: operator.spec?.renewTime }]),
      ...kubelets.items.map(({ metadata, spec }) => ({
        of: `node ${metadata.name}`,
        renewTime: spec?.renewTime,
      })),
    ];
  } catch (error) {
    if (error instanceof ApiError && error.status === 403) return [];
    throw error;
  }
}

/** @returns what MachineConfigs name as the OS image, by pool. */
async function baseImages(
  client: ApiClient,
  { pools }: ObservedCluster,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  const images = pools.map(async ({ metadata, spec }): Promise<readonly (readonly [string, string])[]> => {
    const name = spec.configuration?.name;
    const rendered: MachineConfig | undefined =
      name === undefined ? undefined : await client.find(MachineConfigs, name, { signal });
    const image = rendered?.spec.osImageURL;
    return image === undefined || image === '' ? [] : [[metadata.name, image]];
  });
  return new Map((await Promise.all(images)).flat());
}
