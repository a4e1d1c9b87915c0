import type { Node } from '../../../api/kubernetes.ts';
import type { MachineConfigNode } from '../../../api/machine-config-node.ts';
import type { MachineConfigPool } from '../../../api/machine-config-pool.ts';
import { annotations } from '../../../api/names.ts';
import type { Holder } from '../../fixtures/fleet/holders.ts';
import type { History } from '../history/history.ts';
import { type Moment, type PastCluster, replay } from '../history/replay.ts';
import { holdersIn } from './holders.ts';
import type { Violation } from './violation.ts';

/** Holder of the node leases in the campaign: the operator's default. */
const SHALE = 'shale-operator';

/** At no write does Shale disrupt more nodes of a pool than the pool allows. */
export function checkMaxUnavailable(history: History): readonly Violation[] {
  const violations: Violation[] = [];
  // A deleted MachineConfigNode takes the name of its pool with it, and its node stays in that pool.
  const poolOf = new Map<string, string>();
  let disrupted: ReadonlySet<string> = new Set();
  for (const { event, cluster } of replay(history)) {
    if (event.what !== 'object' || !['Node', 'MachineConfigNode'].includes(event.object.kind)) continue;
    if (event.object.kind === 'MachineConfigNode')
      poolOf.set(event.object.metadata.name, (event.object as MachineConfigNode).spec.pool.name);
    const now = disruptedNodes(cluster);
    // A node that moves to another pool while it is disrupted may be one too many there.
    const started = [...now].filter((node) => !disrupted.has(node));
    for (const node of started) {
      const pool = poolOf.get(node);
      const own = [...now].filter((other) => poolOf.get(other) === pool && !isAway(cluster, other));
      const limit = limitOf(cluster, pool, poolOf);
      if (own.length > limit) {
        const message = `pool ${pool}: ${own.join(', ')} are disrupted at once, ${own.length} of at most ${limit}`;
        violations.push({ invariant: 'maxUnavailable', at: event.at, message });
      }
    }
    disrupted = now;
  }
  return violations;
}

/** @returns nodes that Shale cordoned, or that may drain or reboot. */
function disruptedNodes(cluster: PastCluster): ReadonlySet<string> {
  const cordoned = cluster.list<Node>('Node').filter(isCordonedByShale);
  const granted = cluster
    .list<MachineConfigNode>('MachineConfigNode')
    .filter(({ spec }) => spec.grant?.level === 'Disrupt');
  return new Set([...cordoned, ...granted].map(({ metadata }) => metadata.name));
}

/** Shale leaves its cordon on nodes that others switch off or delete, and counts them no more. */
function isAway(cluster: PastCluster, name: string): boolean {
  return holdersIn(cluster, name).some((holder) => AWAY.has(holder));
}

const AWAY: ReadonlySet<Holder> = new Set(['power-off', 'node-deletion', 'machine-deletion']);

function isCordonedByShale({ metadata, spec }: Node): boolean {
  return spec?.unschedulable === true && metadata.annotations?.[annotations.cordonedByShale] === 'true';
}

/** MCO's rule: a percentage is rounded down to at least 1; 1 where nothing is set. */
function limitOf(
  cluster: PastCluster,
  pool: string | undefined,
  poolOf: ReadonlyMap<string, string>,
): number {
  const setting = cluster.get<MachineConfigPool>('MachineConfigPool', pool ?? '')?.spec.maxUnavailable ?? 1;
  if (typeof setting === 'number') return setting;
  const size = [...poolOf.values()].filter((other) => other === pool).length;
  return Math.max(1, Math.floor((size * Number.parseInt(setting, 10)) / 100));
}

/** Who cordons a node, lifts that cordon, or lets it act, holds its Lease. */
export function checkLeases(history: History): readonly Violation[] {
  const violations: Violation[] = [];
  for (const moment of replay(history)) {
    const deed = deedNeedingLease(moment);
    if (deed === undefined) continue;
    const holder = moment.cluster.nodeLease(deed.node)?.spec?.holderIdentity ?? 'nobody';
    if (holder === SHALE) continue;
    const message = `node ${deed.node} ${deed.what}, and its Lease is held by ${holder}`;
    violations.push({ invariant: 'node lease', at: moment.event.at, message });
  }
  return violations;
}

function deedNeedingLease({ event, before }: Moment): { node: string; what: string } | undefined {
  if (event.what !== 'object' || event.type !== 'MODIFIED' || before === undefined) return undefined;
  const node = event.object.metadata.name;
  if (event.object.kind === 'Node') {
    const [was, is] = [isCordonedByShale(before as Node), isCordonedByShale(event.object as Node)];
    if (was === is) return undefined;
    const stillCordoned = (event.object as Node).spec?.unschedulable === true;
    if (is) return { node, what: 'was cordoned by Shale' };
    return stillCordoned ? undefined : { node, what: 'was uncordoned' };
  }
  if (event.object.kind !== 'MachineConfigNode') return undefined;
  const [old, grant] = [before as MachineConfigNode, event.object as MachineConfigNode].map(
    ({ spec }) => spec.grant,
  );
  const isNew = grant !== undefined && JSON.stringify(old) !== JSON.stringify(grant);
  return isNew ? { node, what: `was granted ${grant.level} for ${grant.config}` } : undefined;
}

/** Shale never takes away a cordon that it did not make. A Node that was deleted takes its cordon along. */
export function checkAdminCordons(history: History): readonly Violation[] {
  const violations: Violation[] = [];
  const admin = history.events.filter((event) => event.what === 'admin cordon');
  const registered = new Map<string, number>();
  for (const { event, before } of replay(history)) {
    if (event.what !== 'object' || event.object.kind !== 'Node') continue;
    const node = event.object as Node;
    const { name } = node.metadata;
    const version = Number(node.metadata.resourceVersion);
    if (before === undefined) registered.set(name, version);
    const since = registered.get(name) ?? 0;
    const last = admin
      .filter((each) => each.node === name && since <= each.version && each.version <= version)
      .sort((a, b) => a.version - b.version)
      .at(-1);
    if (last?.cordoned === true && node.spec?.unschedulable !== true && event.type !== 'DELETED') {
      const message = `node ${node.metadata.name} is schedulable, and an admin had cordoned it`;
      violations.push({ invariant: 'admin cordon', at: event.at, message });
    }
  }
  return violations;
}
