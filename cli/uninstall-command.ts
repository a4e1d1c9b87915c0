import { setTimeout as delay } from 'node:timers/promises';
import { Command, Option } from 'commander';
import {
  ConfigMaps,
  CustomResourceDefinitions,
  DaemonSets,
  Deployments,
  PodDisruptionBudgets,
  Pods,
  ServiceAccounts,
  ValidatingAdmissionPolicies,
  ValidatingAdmissionPolicyBindings,
} from '../api/kubernetes.ts';
import { MachineConfigPools } from '../api/machine-config-pool.ts';
import {
  annotations,
  BUILDER_DEPLOYMENT,
  DEFAULT_LEASE_NAMESPACE,
  OPERATOR_DEPLOYMENT,
  SWITCH_CONFIG_MAP,
} from '../api/names.ts';
import type { Kind, KubernetesObject } from '../api/object.ts';
import { noun, plural } from '../api/plural.ts';
import type { ApiClient } from '../cluster/api-client.ts';
import { isNotFound } from '../cluster/api-client.ts';
import { madeBySwitch } from '../opt-in/machine-os-configs.ts';
import type { ObservedCluster } from '../view/observed-cluster.ts';
import {
  type Agreement,
  type AgreementFlags,
  agreementBy,
  onTerminal,
  type Plan,
  withAgreementFlags,
} from './command-line/agreement.ts';
import { type ClusterFlags, onCluster, readAll, withClusterFlags } from './command-line/cluster-access.ts';
import { CommandError } from './command-line/exit-codes.ts';
import { print } from './command-line/output.ts';
import { timeoutFlag } from './command-line/quantities.ts';
import { switchPlan } from './layering/switch-plan.ts';
import { observeCluster, type Places } from './observe/cluster-watch.ts';
import { layeringArrival } from './observe/layering-arrival.ts';
import { waitForArrival } from './observe/wait-for-arrival.ts';
import { runningTries } from './try/running-tries.ts';

interface UninstallFlags extends ClusterFlags, Places, AgreementFlags {
  readonly revert?: boolean;
  readonly keep?: boolean;
  readonly withObjects?: boolean;
  /** ms */
  readonly timeout: number;
}

const EXAMPLES = `
Examples:
  shale uninstall --revert                  nodes return to the stock image first
  shale uninstall --revert --dry-run        prints what nodes would do
  shale uninstall --keep                    nodes stay as they are
  shale uninstall --revert --with-objects   also deletes every MachineConfig and MachineConfigPool

Not removed: the namespaces with their Secrets, and what MachineConfigs wrote to nodes in standard mode.`;

/** `shale uninstall`: removes Shale from a cluster, with nodes on the stock image or as they are, as the user chose. */
export function uninstallCommand(): Command {
  const command = new Command('uninstall')
    .addOption(
      new Option('--revert', 'first return nodes that run images to the stock image').conflicts('keep'),
    )
    .option('--keep', 'leave nodes as they are, including their images')
    .option('--with-objects', 'also delete the CRDs, and with them every MachineConfig and MachineConfigPool')
    .option('--lease-namespace <name>', 'namespace of the node leases', DEFAULT_LEASE_NAMESPACE)
    .addOption(timeoutFlag('2h'));
  return withAgreementFlags(withClusterFlags(command))
    .addHelpText('after', EXAMPLES)
    .action((flags: UninstallFlags) =>
      onCluster(flags, (client, signal) => uninstall(client, flags, signal)),
    );
}

async function uninstall(client: ApiClient, flags: UninstallFlags, signal: AbortSignal): Promise<void> {
  const choice = flags.revert === true ? 'revert' : flags.keep === true ? 'keep' : undefined;
  const agree = agreementBy(flags, onTerminal(signal));
  let cluster: ObservedCluster;
  let agreement: Agreement;
  do {
    cluster = await observeCluster(client, flags, signal);
    const obstacle = uninstallObstacle(cluster, choice) ?? (await findRunningTries(client, signal));
    if (obstacle !== undefined) throw new CommandError(obstacle);
    agreement = await agree(await planOf(client, cluster, flags, signal));
  } while (agreement === 'lookAgain');
  if (agreement === 'dryRun') return;
  if (choice === 'revert') {
    await revertNodes(client, cluster, flags, signal);
    // That takes an hour and more.
    const obstacle = await findRunningTries(client, signal);
    if (obstacle !== undefined) throw new CommandError(obstacle);
  }
  await removeShale(client, flags, signal);
}

async function findRunningTries(client: ApiClient, signal: AbortSignal): Promise<string | undefined> {
  return runningTries(await readAll(client, MachineConfigPools, { signal }));
}

/** @returns what nodes will do, and what is removed. */
async function planOf(
  client: ApiClient,
  cluster: ObservedCluster,
  { revert = false, withObjects = false, namespace, leaseNamespace }: UninstallFlags,
  signal: AbortSignal,
): Promise<Plan> {
  const objects = withObjects ? ', and deleting every MachineConfig and MachineConfigPool' : '';
  const removal = `removing Shale from namespace ${namespace}${objects}`;
  if (!revert) return { warnings: [], lines: [`${removal}; nodes stay as they are`], disrupts: false };
  const plan = await switchPlan(
    { client, namespace, leaseNamespace, resolveTags: false, signal },
    {
      cluster,
      data: { ...cluster.switchMap?.data, enabled: 'false' },
      goal: goalOfRevert(cluster),
      notBySwitch: [],
      changes: true,
    },
  );
  return { ...plan, lines: [...plan.lines, `then ${removal}`] };
}

/** Every pool on the stock image, and nothing left of layering. */
function goalOfRevert({ pools }: ObservedCluster) {
  return { layered: [], standard: pools.map(({ metadata }) => metadata.name), clean: true };
}

/** Returns nodes that run images to the stock image, and waits for them. */
async function revertNodes(
  client: ApiClient,
  cluster: ObservedCluster,
  flags: UninstallFlags,
  signal: AbortSignal,
): Promise<void> {
  await switchOff(client, flags, signal);
  const goal = goalOfRevert(cluster);
  const look = (seen: ObservedCluster, now: number) => layeringArrival(goal, seen, now);
  const { timeout } = flags;
  const afterInterrupt =
    'nodes still return to the stock image, and Shale stays installed; to uninstall it, run the command again';
  await waitForArrival({ client, places: flags, look, timeout, afterInterrupt, signal });
  print('every node runs the stock image');
}

async function removeShale(client: ApiClient, flags: UninstallFlags, signal: AbortSignal): Promise<void> {
  await stopOperator(client, flags, signal);
  await remove(client, Deployments, BUILDER_DEPLOYMENT, flags.namespace, signal);
  for (const kind of INSTALLED_KINDS) await removeAll(client, kind, signal);
  // Otherwise the next installation would start with the layering switch of this one.
  await remove(client, ConfigMaps, SWITCH_CONFIG_MAP, flags.namespace, signal);
  if (flags.withObjects === true) await removeAll(client, DEFINITIONS, signal);
  print(
    flags.withObjects === true
      ? 'Shale and its objects have been removed'
      : 'Shale has been removed; MachineConfigs and MachineConfigPools still exist, but nothing acts on them',
  );
}

async function switchOff(
  client: ApiClient,
  { namespace }: UninstallFlags,
  signal: AbortSignal,
): Promise<void> {
  const body = { data: { enabled: 'false' } };
  await client
    .patch(ConfigMaps, SWITCH_CONFIG_MAP, { type: 'merge', body }, { namespace, signal })
    .catch((error: unknown) => {
      // Without the ConfigMap layering is off.
      if (!isNotFound(error)) throw error;
    });
}

/** ms; pods have 30 s to terminate unless terminationGracePeriodSeconds says otherwise. */
const OPERATOR_ENDS_MS = 60_000;
const LOOK_AGAIN_MS = 500;

/**
 * Stops the operator before anything that it needs is deleted. It may have started an update since the cluster was
 * observed.
 *
 * @throws {CommandError} that names the nodes which it has left cordoned; nothing else has been deleted then.
 */
async function stopOperator(client: ApiClient, flags: UninstallFlags, signal: AbortSignal): Promise<void> {
  const { namespace } = flags;
  await remove(client, Deployments, OPERATOR_DEPLOYMENT, namespace, signal);
  const labelSelector = `app.kubernetes.io/name=${OPERATOR_DEPLOYMENT}`;
  const deadline = performance.now() + OPERATOR_ENDS_MS;
  while ((await client.list(Pods, { namespace, labelSelector, signal })).items.length > 0) {
    if (performance.now() >= deadline)
      throw new CommandError("the operator's pods did not terminate in time");
    await delay(LOOK_AGAIN_MS, undefined, { signal });
  }
  const cordoned = cordonedNodes(await observeCluster(client, flags, signal));
  if (cordoned.length > 0) {
    throw new CommandError(
      `${cordoned.join(', ')}: the operator had just started an update, which the daemon completes; install the operator again to finish it, or uncordon the ${noun(cordoned.length, 'node')} by hand (kubectl uncordon; kubectl annotate node ${cordoned.join(' ')} shale.dev/cordoned-) and run this again`,
    );
  }
}

async function removeAll(
  client: ApiClient,
  kind: Kind<KubernetesObject>,
  signal: AbortSignal,
): Promise<void> {
  const { items } = await client.list(kind, { labelSelector: INSTALLED, signal }).catch((error: unknown) => {
    // The cluster doesn't have this kind.
    if (isNotFound(error)) return { items: [] };
    throw error;
  });
  for (const { metadata } of items) await remove(client, kind, metadata.name, metadata.namespace, signal);
}

async function remove<T extends KubernetesObject>(
  client: ApiClient,
  kind: Kind<T>,
  name: string,
  namespace: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  const where = namespace === undefined || !kind.namespaced ? {} : { namespace };
  const deleted = await client.delete(kind, name, { ...where, propagationPolicy: 'Background', signal });
  if (deleted) print(`deleted ${kind.kind} ${name}`);
}

/** What happens to nodes that run an image: they return to the stock image first, or stay as they are. */
type LayeredNodes = 'revert' | 'keep' | undefined;

/**
 * @param choice what the user chose by a flag; undefined without one.
 * @returns why Shale can't be removed now and what to do; undefined when it can.
 */
export function uninstallObstacle(cluster: ObservedCluster, choice: LayeredNodes): string | undefined {
  const cordoned = cordonedNodes(cluster);
  if (cordoned.length > 0) {
    return `${cordoned.join(', ')}: an update is in progress, and would leave the ${noun(cordoned.length, 'node')} cordoned; wait until it has finished (shale status), or pause the pool so that no other node starts`;
  }
  const layered = cluster.machineConfigNodes.filter(({ status }) => status?.mode === 'Layered');
  if (choice === undefined && (layered.length > 0 || cluster.machineOSConfigs.length > 0)) {
    return `layering is enabled, and ${plural(layered.length, 'node')} ${noun(layered.length, 'runs', 'run')} images; use --revert to return nodes to the stock image first, with one reboot each, or --keep to leave them as they are, without further updates`;
  }
  const byHand = cluster.machineOSConfigs.filter((config) => !madeBySwitch(config));
  if (choice === 'revert' && byHand.length > 0) {
    const names = byHand.map(({ metadata }) => metadata.name).join(', ');
    return byHand.length === 1
      ? `MachineOSConfig ${names} was created by hand: delete it to return its pool to the stock image`
      : `MachineOSConfigs ${names} were created by hand: delete them to return their pools to the stock image`;
  }
  return undefined;
}

/** @returns nodes that Shale has cordoned for an update. */
function cordonedNodes({ nodes }: Pick<ObservedCluster, 'nodes'>): readonly string[] {
  return nodes
    .filter(({ metadata }) => metadata.annotations?.[annotations.cordonedByShale] !== undefined)
    .map(({ metadata }) => metadata.name)
    .sort();
}

/** On everything that the manifests install (manifests/base/kustomization.yaml). */
export const INSTALLED = 'app.kubernetes.io/part-of=shale';

const kind = (
  group: string,
  name: string,
  plural: string,
  scope: 'Namespaced' | 'Cluster',
): Kind<KubernetesObject> => ({
  group,
  version: 'v1',
  kind: name,
  plural,
  namespaced: scope === 'Namespaced',
});
const RBAC = 'rbac.authorization.k8s.io';

/**
 * What the manifests install besides the operator's Deployment, in the order of deletion: processes before what they
 * need, bindings before what they bind. A cluster may lack a kind: those of the Prometheus operator.
 */
export const INSTALLED_KINDS: readonly Kind<KubernetesObject>[] = [
  Deployments,
  DaemonSets,
  PodDisruptionBudgets,
  ValidatingAdmissionPolicyBindings,
  ValidatingAdmissionPolicies,
  kind('networking.k8s.io', 'NetworkPolicy', 'networkpolicies', 'Namespaced'),
  kind('monitoring.coreos.com', 'ServiceMonitor', 'servicemonitors', 'Namespaced'),
  kind('monitoring.coreos.com', 'PrometheusRule', 'prometheusrules', 'Namespaced'),
  kind('', 'Service', 'services', 'Namespaced'),
  kind('', 'LimitRange', 'limitranges', 'Namespaced'),
  kind('', 'ResourceQuota', 'resourcequotas', 'Namespaced'),
  ConfigMaps,
  kind(RBAC, 'ClusterRoleBinding', 'clusterrolebindings', 'Cluster'),
  kind(RBAC, 'RoleBinding', 'rolebindings', 'Namespaced'),
  kind(RBAC, 'ClusterRole', 'clusterroles', 'Cluster'),
  kind(RBAC, 'Role', 'roles', 'Namespaced'),
  ServiceAccounts,
];

/** Deleting a CRD deletes its objects too: the MachineConfigs and pools that admins wrote. */
const DEFINITIONS: Kind<KubernetesObject> = CustomResourceDefinitions;
