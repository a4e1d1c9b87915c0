import type { Lease, Node } from '../../../api/kubernetes.ts';
import type { MachineConfigNode, MachineConfigNodeSpec } from '../../../api/machine-config-node.ts';
import { annotations, DEFAULT_LEASE_NAMESPACE } from '../../../api/names.ts';
import type { KubernetesObject } from '../../../api/object.ts';
import { leaseNameOf, nodeOfLease } from '../../../rollout/node-leases.ts';
import {
  type Holder,
  holdsDisk,
  isReadWhenTaken,
  Machines,
  type NodeMaintenance,
  placeOfMachine,
  shownHolders,
} from '../../fixtures/fleet/holders.ts';
import type { History } from '../history/history.ts';
import { type Moment, type PastCluster, replay } from '../history/replay.ts';
import { disturbancesOfOperator } from './disturbances.ts';
import type { Violation } from './violation.ts';

/** ms in which an operator or a daemon that nothing disturbs acts on what it is shown. */
const ACTS_WITHIN = 5_000;
/** ms for which the operator keeps what it does not watch. */
const KEPT: Partial<Readonly<Record<Holder, number>>> = { maintenance: 5_000, 'machine-deletion': 30_000 };

/** What Shale did to a node. */
interface Deed {
  readonly node: string;
  readonly what: string;
  readonly kind: 'disrupts' | 'writes' | 'uncordons';
}

/**
 * A node that somebody else holds is not disrupted: what has no grant yet gets none, and the node is neither cordoned
 * by Shale nor given anything to write. A cordon of Shale's is theirs to rely on.
 *
 * Their leases are exact (checkLeases). Of other signs the operator has to have had the time to know.
 */
export function checkHolders(history: History): readonly Violation[] {
  const violations: Violation[] = [];
  const disturbances = disturbancesOfOperator(history);
  const held = new Map<string, ReadonlyMap<Holder, number>>();
  for (const moment of replay(history)) {
    const { event, cluster } = moment;
    if (event.what !== 'object') continue;
    for (const { node, what, kind } of deedsOf(moment)) {
      const against = [...(held.get(node) ?? [])].filter(
        ([holder, since]) =>
          forbids(holder, kind) && disturbances.hadQuiet(since, event.at, ACTS_WITHIN + (KEPT[holder] ?? 0)),
      );
      if (against.length === 0) continue;
      const who = against.map(([holder, since]) => `${holder} for ${event.at - since} ms`).join(', ');
      const message = `node ${node} ${what}, and others hold it: ${who}`;
      violations.push({ invariant: 'holders', at: event.at, message });
    }
    for (const node of nodesShown(event.object)) {
      const before = held.get(node);
      const now = holdersIn(cluster, node);
      held.set(node, new Map(now.map((holder) => [holder, before?.get(holder) ?? event.at])));
    }
  }
  return violations;
}

function forbids(holder: Holder, kind: Deed['kind']): boolean {
  switch (kind) {
    case 'disrupts':
      return true;
    case 'writes':
      return holdsDisk(holder);
    case 'uncordons':
      return holder !== 'cordon' && !isReadWhenTaken(holder);
  }
}

function deedsOf({ event, before }: Moment): readonly Deed[] {
  if (event.what !== 'object' || event.type !== 'MODIFIED' || before === undefined) return [];
  const node = event.object.metadata.name;
  if (event.object.kind === 'Node') {
    const [was, is] = [isCordonedByShale(before as Node), isCordonedByShale(event.object as Node)];
    if (was === is) return [];
    if (is) return [{ node, what: 'was cordoned by Shale', kind: 'disrupts' }];
    const stays = (event.object as Node).spec?.unschedulable === true;
    return stays ? [] : [{ node, what: 'was uncordoned', kind: 'uncordons' }];
  }
  if (event.object.kind !== 'MachineConfigNode') return [];
  const [{ spec: old }, { spec }] = [before as MachineConfigNode, event.object as MachineConfigNode];
  const { grant } = spec;
  const isNew = grant !== undefined && JSON.stringify(old.grant) !== JSON.stringify(grant);
  const asks = toBeWritten(spec);
  return [
    ...(isNew ? [{ node, what: `was granted ${grant.level}`, kind: 'disrupts' } as const] : []),
    ...(asks === toBeWritten(old)
      ? []
      : [{ node, what: `was given something to write: ${asks}`, kind: 'writes' } as const]),
  ];
}

function isCordonedByShale({ metadata, spec }: Node): boolean {
  return spec?.unschedulable === true && metadata.annotations?.[annotations.cordonedByShale] === 'true';
}

/** What a daemon writes to the disk; other fields say how it does. */
function toBeWritten(spec: MachineConfigNodeSpec): string {
  const { configVersion, configImage, osImage, nextBoot, pinnedImages, certificates } = spec;
  return JSON.stringify({ configVersion, configImage, osImage, nextBoot, pinnedImages, certificates });
}

/** @returns the nodes whose holders an object may show. */
export function nodesShown(object: KubernetesObject): readonly string[] {
  const { name } = object.metadata;
  switch (object.kind) {
    case 'Node':
    case 'Machine':
      return [name];
    case 'Lease':
      return [nodeOfLease(name) ?? []].flat();
    case 'NodeMaintenance':
      return [(object as NodeMaintenance).spec.nodeName];
    default:
      return [];
  }
}

/** @returns who holds a node at that moment. */
export function holdersIn(cluster: PastCluster, name: string): readonly Holder[] {
  const node = cluster.node(name);
  if (node === undefined) return [];
  const lease = cluster.get<Lease>('Lease', leaseNameOf(name), DEFAULT_LEASE_NAMESPACE);
  return shownHolders({
    node,
    leaseHolder: lease?.spec?.holderIdentity,
    maintenances: cluster.list<NodeMaintenance>('NodeMaintenance'),
    machine: cluster.get(Machines.kind, name, placeOfMachine.namespace),
  });
}
