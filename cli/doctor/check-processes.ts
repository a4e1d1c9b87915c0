import type { DaemonSet, Pod } from '../../api/kubernetes.ts';
import { matchesSelector } from '../../api/label-selector.ts';
import { noun, plural } from '../../api/plural.ts';
import { defaultRolloutOptions } from '../../rollout/options.ts';
import { nodeView } from '../../view/node-view.ts';
import { isAvailable, type ObservedCluster } from '../../view/observed-cluster.ts';
import { type Finding, findings, found, namedNodes } from './finding.ts';

/** The DaemonSet of the node daemons and its pods. */
export interface Daemons {
  /** Undefined when it doesn't exist. */
  readonly daemonSet: DaemonSet | undefined;
  /** Undefined when the user is not allowed to list them. */
  readonly pods: readonly Pod[] | undefined;
}

/**
 * Checks that Shale's processes are running. A node that is being updated takes its daemon along, and maybe the
 * operator: that is a warning until the operator, too, would call the node unhealthy.
 *
 * @param now ms since the epoch.
 */
export function judgeProcesses(
  cluster: ObservedCluster,
  daemons: Daemons,
  namespace: string,
  now: number,
): Finding[] {
  const { warning, failure } = findings('processes');
  const logs = (what: string) =>
    `kubectl -n ${namespace} describe ${what}; kubectl -n ${namespace} logs ${what}`;
  const wantsBuilder = cluster.machineOSConfigs.length > 0;
  const updating = updatingNodes(cluster, now);
  return found(
    judgeOperator(cluster, updating, { namespace, logs: logs('deployment/shale-operator') }),
    daemons.daemonSet === undefined
      ? failure(`DaemonSet ${namespace}/shale-daemon does not exist`, INSTALL)
      : judgeDaemons(cluster, daemons.daemonSet, daemons.pods, updating, namespace),
    wantsBuilder &&
      !isAvailable(cluster.builder) &&
      warning(
        'layering is enabled, but the Machine OS Builder is not running',
        logs('deployment/machine-os-builder'),
      ),
    cluster.page !== undefined &&
      !isAvailable(cluster.page) &&
      warning(
        'the live page is not running, or waits for its certificate; rollouts continue',
        logs('deployment/shale-page'),
      ),
  );
}

const INSTALL = 'kubectl apply -k manifests/base';

/** What nodes are doing whose processes may be away for a while, by node. */
type UpdatingNodes = ReadonlyMap<string, string>;

/** Actions on the node stop pods, or the machine. */
const DISRUPTING: ReadonlySet<string> = new Set(['draining', 'applying', 'rebooting']);

function updatingNodes(cluster: ObservedCluster, now: number): UpdatingNodes {
  const longest = defaultRolloutOptions.pace.unhealthyAfterSeconds * 1000;
  return new Map(
    cluster.machineConfigNodes
      .map((node) => nodeView(node, cluster, now))
      .filter(({ state, since }) => DISRUPTING.has(state) && !(now - Date.parse(since ?? '') > longest))
      .map(({ name, state }) => [name, state]),
  );
}

function judgeOperator(
  { operator }: ObservedCluster,
  updating: UpdatingNodes,
  { namespace, logs }: { readonly namespace: string; readonly logs: string },
): Finding {
  const { ok, warning, failure } = findings('processes');
  if (operator === undefined)
    return failure(`Deployment ${namespace}/shale-operator does not exist`, INSTALL);
  if (isAvailable(operator)) return ok('the operator is running');
  if (updating.size === 0) return failure('the operator is not running', logs);
  return warning(
    `the operator is not running; it may have run on a node that is being updated: ${inWords([...updating])}`,
    `wait until another node or the same one runs it; if none does: ${logs}`,
  );
}

function judgeDaemons(
  { nodes }: ObservedCluster,
  { spec, status }: DaemonSet,
  pods: readonly Pod[] | undefined,
  updating: UpdatingNodes,
  namespace: string,
): Finding {
  const { ok, warning, failure } = findings('processes');
  const { desiredNumberScheduled: desired = 0, numberReady: ready = 0 } = status ?? {};
  const missing = desired - ready;
  if (missing <= 0) return ok(`${plural(ready, 'node daemon')} ${noun(ready, 'is', 'are')} ready`);
  const running = new Set((pods ?? []).filter(isReady).map(({ spec }) => spec.nodeName));
  const matchLabels = spec.template.spec.nodeSelector ?? {};
  const names = nodes
    // A node of another operating system, for one, has no daemon, and lacks none.
    .filter(({ metadata }) => matchesSelector({ matchLabels }, metadata.labels ?? {}))
    .map(({ metadata }) => metadata.name)
    .filter((name) => !running.has(name));
  const without =
    pods === undefined ? [] : names.toSorted().map((name) => [name, updating.get(name)] as const);
  const count = `${missing} of ${plural(desired, 'node daemon')} ${noun(missing, 'is', 'are')} not ready`;
  const what = without.length === 0 ? count : `${count}: ${inWords(without)}`;
  const stopped = without.filter(([, state]) => state === undefined).map(([name]) => name);
  if (without.length > 0 && stopped.length === 0) {
    return warning(
      what,
      `wait until ${noun(missing, 'its update has', 'their updates have')} finished: shale status`,
    );
  }
  const [first] = stopped;
  const where = first === undefined ? '' : ` --field-selector spec.nodeName=${first}`;
  const label = '-l app.kubernetes.io/name=shale-daemon';
  return failure(
    what,
    `kubectl -n ${namespace} describe pods ${label}${where}; kubectl -n ${namespace} logs ${label}`,
  );
}

function isReady({ status }: Pod): boolean {
  return status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false;
}

/** @returns nodes with what they are doing: `worker-2 (rebooting), worker-3`. */
function inWords(nodes: readonly (readonly [name: string, state: string | undefined])[]): string {
  return namedNodes(nodes.map(([name, state]) => (state === undefined ? name : `${name} (${state})`)));
}
