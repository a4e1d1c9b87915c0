import { Command } from 'commander';
import {
  type CustomResourceDefinition,
  CustomResourceDefinitions,
  DaemonSets,
  Deployments,
  Leases,
  Nodes,
  Pods,
} from '../../api/kubernetes.ts';
import { MachineConfigs } from '../../api/machine-config.ts';
import { MachineConfigurations } from '../../api/machine-configuration.ts';
import { DAEMON_SET, MACHINE_CONFIGURATION, OPERATOR_DEPLOYMENT } from '../../api/names.ts';
import { PoolRevisions } from '../../api/pool-revision.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { detectOtherOperator } from '../../rollout/other-operator.ts';
import { isReady } from '../../rollout/pools/node-availability.ts';
import { nothingObserved } from '../../view/observed-cluster.ts';
import {
  type ClusterFlags,
  connectionOf,
  onCluster,
  readAll,
  unlessForbidden,
  withClusterFlags,
  withLeaseNamespace,
} from '../command-line/cluster-access.ts';
import { CommandError } from '../command-line/exit-codes.ts';
import { outputFlag, print, TABLE_FORMATS } from '../command-line/output.ts';
import { printAs } from '../command-line/print-as.ts';
import { withRegistryFlags } from '../command-line/registry-flags.ts';
import { observeCluster, type Places } from '../observe/cluster-watch.ts';
import {
  areServed,
  judgeDefinitions,
  judgeLeaseTimes,
  judgeServer,
  type LeaseTime,
  readServerFacts,
} from './check-api-server.ts';
import { judgeBootImages } from './check-boot-images.ts';
import { judgeNodes } from './check-cluster.ts';
import { judgeConditions } from './check-conditions.ts';
import { judgeContacts } from './check-contacts.ts';
import { checkEnginePods } from './check-engine-pods.ts';
import { judgeNeighbours } from './check-neighbours.ts';
import { judgeOutsideServices } from './check-outside-services.ts';
import { checkPermissions, operatorMay, PATCH_MACHINES } from './check-permissions.ts';
import { checkPolicies } from './check-policies.ts';
import { type Daemons, judgeProcesses } from './check-processes.ts';
import { examineRegistries, type RegistryExamination, refuseUnknownNodes } from './examine-registries.ts';
import { DoctorOutput, type Finding, findings, formatFindings, found } from './finding.ts';
import { MACHINE_HEALTH_CHECKS } from './neighbours.ts';

interface DoctorFlags extends ClusterFlags, Places, RegistryExamination {
  readonly output: string;
}

/** Kubelets renew their leases here (kubernetes.io, "Leases", node heartbeats). */
const KUBELET_LEASES = 'kube-node-lease';

const EXAMPLES = `
Examples:
  shale doctor                                              before and after the installation
  shale doctor --image-repository r.example.com/os/{pool} --push-secret push --base-image r.example.com/os/stock:1
  shale doctor --probe                                      also test registries from where the builder and the nodes run`;

/** `shale doctor`: checks that a cluster is ready for Shale and explains how to fix what isn't. */
export function doctorCommand(): Command {
  const command = withLeaseNamespace(withClusterFlags(new Command('doctor')))
    .option(
      '--probe [node...]',
      'also test registries from short-lived pods, as the builder and the nodes reach them; default: one node of each pool',
    )
    .option(
      '--image-repository <repository>',
      'test a repository before passing it to shale enable, for pools without images',
    )
    .option('--push-secret <name>', 'Secret with the credentials for pushing images; with --image-repository')
    .option(
      '--pull-secret <name>',
      'Secret with the credentials for pulling base images; with --image-repository',
    )
    .option('--base-image <image>', 'base image; with --image-repository');
  return withRegistryFlags(command)
    .addOption(outputFlag(...TABLE_FORMATS))
    .addHelpText('after', EXAMPLES)
    .action((flags: DoctorFlags) =>
      onCluster(flags, async (client, signal) => {
        const server = await readServerFacts(await connectionOf(flags), signal);
        const results = [...judgeServer(server), ...(await examine(client, flags, server.time, signal))];
        if (flags.output === 'table') print(formatFindings(results));
        else printAs(flags.output, DoctorOutput, results);
        const failures = results.filter(({ level }) => level === 'failure').length;
        if (failures > 0) throw new CommandError(`${failures} of ${results.length} checks failed`);
      }),
    );
}

async function examine(
  client: ApiClient,
  places: DoctorFlags,
  now: number,
  signal: AbortSignal,
): Promise<Finding[]> {
  const definitions = await readAll(client, CustomResourceDefinitions, { signal });
  const other = await detectOtherOperator(client, signal);
  const { failure, warning } = findings('other operators');
  const general = [
    ...judgeDefinitions(definitions),
    ...found(
      other !== undefined &&
        failure(other, 'remove one of the two operators: each would undo the changes of the other'),
    ),
    ...(await checkPermissions(client, places, signal)),
    ...judgeLeaseTimes(await leaseTimes(client, places.namespace, signal), now),
  ];
  if (!areServed(definitions)) {
    const unknown = {
      ...warning('pools and nodes were not checked', 'install the CRDs first'),
      check: 'nodes',
    };
    return [...general, unknown, ...(await examineRegistries(client, nothingObserved, places, signal))];
  }
  const cluster = await observeCluster(client, places, signal);
  refuseUnknownNodes(places, cluster);
  const { namespace } = places;
  const daemons = await readDaemons(client, namespace, signal);
  const revisions = await unlessForbidden(readAll(client, PoolRevisions, { signal }));
  const configuration = await unlessForbidden(
    client.find(MachineConfigurations, MACHINE_CONFIGURATION, { signal }),
  );
  return [
    ...general,
    ...judgeProcesses(cluster, daemons, namespace, now),
    ...(await checkNeighbours(client, definitions, places, signal)),
    ...(await checkPolicies(client, cluster.operator, signal)),
    ...(await checkEnginePods(client, cluster, signal)),
    ...judgeNodes(cluster, now),
    ...judgeConditions({ ...cluster, configuration }, now),
    ...judgeBootImages(cluster, revisions),
    ...judgeOutsideServices(cluster, namespace),
    ...judgeContacts(cluster, now),
    ...(await examineRegistries(client, cluster, places, signal)),
  ];
}

async function readDaemons(client: ApiClient, namespace: string, signal: AbortSignal): Promise<Daemons> {
  const labelSelector = `app.kubernetes.io/name=${DAEMON_SET}`;
  return {
    daemonSet: await client.find(DaemonSets, DAEMON_SET, { namespace, signal }),
    pods: await unlessForbidden(readAll(client, Pods, { namespace, labelSelector, signal })),
  };
}

/** A user who may not read what runs in other namespaces still gets the other checks. */
async function checkNeighbours(
  client: ApiClient,
  definitions: readonly CustomResourceDefinition[],
  places: Places,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const hasHealthChecks = definitions.some(({ metadata }) => metadata.name === MACHINE_HEALTH_CHECKS);
  const patchesMachines = hasHealthChecks && (await operatorMay(client, places, PATCH_MACHINES, signal));
  const [daemonSets = [], deployments = [], nodes = [], machineConfigs = []] = await Promise.all([
    unlessForbidden(readAll(client, DaemonSets, { signal })),
    unlessForbidden(readAll(client, Deployments, { signal })),
    unlessForbidden(readAll(client, Nodes, { signal })),
    unlessForbidden(readAll(client, MachineConfigs, { signal })),
  ]);
  const workloads = [...daemonSets, ...deployments];
  return judgeNeighbours({
    definitions,
    workloads,
    nodes,
    machineConfigs,
    operator: { patchesMachines },
  });
}

/** A user who can't read leases still gets the other checks. */
async function leaseTimes(
  client: ApiClient,
  namespace: string,
  signal: AbortSignal,
): Promise<readonly LeaseTime[]> {
  const [operator, kubelets = [], nodes = []] = await Promise.all([
    unlessForbidden(client.find(Leases, OPERATOR_DEPLOYMENT, { namespace, signal })),
    unlessForbidden(readAll(client, Leases, { namespace: KUBELET_LEASES, signal })),
    unlessForbidden(readAll(client, Nodes, { signal })),
  ]);
  const ready = new Set(nodes.filter(isReady).map(({ metadata }) => metadata.name));
  return [
    ...(operator === undefined
      ? []
      : [{ of: 'the operator', renewTime: operator.spec?.renewTime, isAlive: false }]),
    ...kubelets.map(({ metadata, spec }) => ({
      of: `node ${metadata.name}`,
      renewTime: spec?.renewTime,
      isAlive: ready.has(metadata.name),
    })),
  ];
}
