import type { Lease } from '../../api/kubernetes.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { MachineConfiguration } from '../../api/machine-configuration.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import { annotations } from '../../api/names.ts';
import type { KubernetesObject } from '../../api/object.ts';
import { by } from '../../api/order.ts';
import { reasonOfHolder } from '../../cluster/lease.ts';
import { nodeOfLease } from '../../rollout/node-leases.ts';
import { defaultRolloutOptions } from '../../rollout/options.ts';
import { type NodeSource, type NodesCluster, nodeSource, updatesCordoned } from '../../view/node-source.ts';
import { policiesLag } from '../../view/policies.ts';
import { domainWaits } from '../../view/slots.ts';
import { shareRows } from '../model/patch.ts';
import {
  EMPTY_VIEW,
  type LeaseRow,
  type NodeRow,
  type PageView,
  type SegmentRow,
  type Table,
} from '../model/view.ts';
import { nodeRow, PlanTable, type RowSource } from './read-node.ts';
import { buildRow, policyRows, poolRow } from './read-tables.ts';
import { continueTimeline, segmentsOf } from './timeline.ts';

/**
 * Computes the view of the page.
 *
 * @param objects as they are now.
 * @param before the previous view: its timeline is continued, and equal rows stay the same objects.
 * @param now ms since the epoch.
 */
export function readView(objects: ClusterObjects, before: PageView = EMPTY_VIEW, now: number): PageView {
  const plans = new PlanTable();
  const { nodes, segments } = readNodes(objects, plans, now);
  const view: PageView = {
    pools: table(objects.pools, (pool) => poolRow(pool, now)),
    nodes,
    plans: plans.rows(),
    builds: table(objects.builds, buildRow),
    policies: policyRows(objects.machineConfiguration),
    leases: leaseRows(objects, now),
    segments: continueTimeline(before.segments, segments, now),
    remarks: remarkRows(objects),
    logs: table(
      objects.builds.filter(({ status }) => status?.logTail !== undefined),
      ({ status }) => status?.logTail ?? [],
    ),
  };
  return shareRows(before, view);
}

function readNodes(
  objects: ClusterObjects,
  plans: PlanTable,
  now: number,
): { readonly nodes: Table<NodeRow>; readonly segments: readonly SegmentRow[] } {
  const rows: Record<string, NodeRow> = {};
  const segments: SegmentRow[] = [];
  const waits = domainWaits(objects, now);
  const names = [...objects.nodes, ...objects.machineConfigNodes].map(({ metadata }) => metadata.name);
  for (const name of [...new Set(names)].toSorted()) {
    const source = { ...nodeSource(name, objects), domainWait: waits.get(name) };
    const read = readNodeOnce(source, plans, now);
    rows[name] = read.row;
    segments.push(...read.segments);
  }
  return { nodes: rows, segments };
}

interface NodeReading {
  readonly source: RowSource;
  readonly row: NodeRow;
  readonly segments: readonly SegmentRow[];
}

/** Most nodes of a large cluster don't change between two views, so the rows of unchanged objects are cached. */
const readings = new WeakMap<MachineConfigNode, NodeReading>();

function readNodeOnce(source: RowSource, plans: PlanTable, now: number): NodeReading {
  const { machineConfigNode } = source;
  if (machineConfigNode === undefined) return { source, row: nodeRow(source, plans, now), segments: [] };
  const known = readings.get(machineConfigNode);
  if (known !== undefined && !changesWithTime(source) && isSameSource(known, source)) {
    plans.addPlansOf(machineConfigNode);
    return known;
  }
  const row = nodeRow(source, plans, now);
  const reading = { source, row, segments: segmentsOf(machineConfigNode, row.state, source.lease) };
  readings.set(machineConfigNode, reading);
  return reading;
}

/** Leases and planned maintenance expire without a change of an object. */
function changesWithTime({ node, lease }: NodeSource): boolean {
  return lease !== undefined || node?.metadata.annotations?.[annotations.plannedMaintenance] !== undefined;
}

/** What a pool says changes all the time while it is updated, and is no matter of nodes that are. */
function isSameSource({ source: known, row }: NodeReading, source: RowSource): boolean {
  return (
    known.node === source.node &&
    known.lease === source.lease &&
    known.inMaintenance === source.inMaintenance &&
    known.dispute === source.dispute &&
    JSON.stringify(known.domainWait) === JSON.stringify(source.domainWait) &&
    (known.pool === source.pool ||
      (row.state === 'updated' && updatesCordoned(known.pool) === updatesCordoned(source.pool)))
  );
}

/** The node leases that have not expired. */
function leaseRows({ leases }: ClusterObjects, now: number): Table<LeaseRow> {
  const rows: Record<string, LeaseRow> = {};
  for (const lease of leases) {
    const { metadata, spec } = lease;
    const node = nodeOfLease(metadata.name);
    const { holderIdentity: holder = '', renewTime, leaseDurationSeconds } = spec ?? {};
    const ends = Date.parse(renewTime ?? '') + (leaseDurationSeconds ?? Number.NaN) * 1000;
    if (node === undefined || holder === '' || !(ends > now)) continue;
    const since = Date.parse(spec?.acquireTime ?? '');
    const ours = holder === defaultRolloutOptions.leases.holder;
    rows[node] = {
      node,
      holder,
      ours,
      since: Number.isNaN(since) ? undefined : since,
      reason: reasonOfHolder(lease),
      until: ours ? undefined : ends,
    };
  }
  return rows;
}

function remarkRows({ machineConfiguration, trouble, silence }: ClusterObjects): PageView['remarks'] {
  const lag = machineConfiguration && policiesLag(machineConfiguration);
  const texts = [...trouble, ...(lag === undefined ? [] : [`Disruption policies: ${lag}`])];
  return {
    ...Object.fromEntries(texts.map((text) => [text, { text }])),
    ...(silence === undefined
      ? {}
      : {
          silence: {
            text: `The cluster does not respond, so this page may be out of date: ${silence.why}`,
            silentSince: silence.since,
          },
        }),
  };
}

function table<T extends KubernetesObject, Row>(objects: readonly T[], read: (object: T) => Row): Table<Row> {
  return Object.fromEntries(
    objects.map((object) => [object.metadata.name, read(object)] as const).toSorted(by(([key]) => key)),
  );
}

/** The objects that the view is computed from. */
export interface ClusterObjects extends NodesCluster {
  readonly builds: readonly MachineOSBuild[];
  /** Those of nodes. */
  readonly leases: readonly Lease[];
  readonly machineConfiguration: MachineConfiguration | undefined;
  /** What can't be read, as text. */
  readonly trouble: readonly string[];
  /** Set while the cluster doesn't answer; `since`: its last answer, ms since the epoch. */
  readonly silence: { readonly since: number; readonly why: string } | undefined;
}
