/**
 * `node bench/status.ts`: what `shale status` makes of a cluster that it has read, beside reading the same objects from
 * their JSON, and how it grows. Every tenth node is being updated, and every node has a lease.
 */

import { statusView } from '../cli/observe/status-view.ts';
import { leaseNameOf } from '../rollout/node-leases.ts';
import { condition, machineConfigNode, node, observed, pool } from '../test/fixtures/observed-cluster.ts';
import { growth, type Measured, time } from './timing.ts';

const NODE_COUNTS = [500, 1000, 5000];
const UPDATING_OF = 10;
const NOW = Date.parse('2026-11-20T10:05:00Z');

function cluster(count: number) {
  const names = Array.from({ length: count }, (_, index) => `node-${index}`);
  return observed({
    pools: [pool([])],
    nodes: names.map((name) => node(name)),
    machineConfigNodes: names.map((name, index) =>
      machineConfigNode(name, {
        conditions: [
          index % UPDATING_OF === 0
            ? condition('UpdatePrepared', 'True', 'waits for permission')
            : condition('Updated', 'True', ''),
        ],
      }),
    ),
    leases: names.map((name) => ({
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: leaseNameOf(name) },
      spec: { holderIdentity: '', leaseDurationSeconds: 600 },
    })),
  });
}

const rows = [];
let previous: Measured | undefined;
for (const nodes of NODE_COUNTS) {
  const seen = cluster(nodes);
  const json = JSON.stringify(seen);
  const read = time(() => void JSON.parse(json));
  const view = time(() => void statusView(seen, NOW));
  rows.push({
    nodes,
    'JSON ms': read.medianMs.toFixed(1),
    'view ms': view.medianMs.toFixed(1),
    'best ms': view.bestMs.toFixed(1),
    'ms growth / size growth': growth(previous, { size: nodes, ms: view.bestMs }),
  });
  previous = { size: nodes, ms: view.bestMs };
}
// biome-ignore lint/suspicious/noConsole: a benchmark prints its table
console.table(rows);
