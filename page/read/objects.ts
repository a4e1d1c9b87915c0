import type { Lease, Node } from '../../api/kubernetes.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import type { MachineConfiguration } from '../../api/machine-configuration.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';

/** What the page is read from. */
export interface ClusterObjects {
  readonly pools: readonly MachineConfigPool[];
  readonly machineConfigNodes: readonly MachineConfigNode[];
  readonly nodes: readonly Node[];
  readonly builds: readonly MachineOSBuild[];
  /** Those of nodes. */
  readonly leases: readonly Lease[];
  readonly machineConfiguration: MachineConfiguration | undefined;
  /** Nodes with an active NodeMaintenance (medik8s). */
  readonly inMaintenance: ReadonlySet<string>;
  /** What can't be read, in words. */
  readonly trouble: readonly string[];
}
