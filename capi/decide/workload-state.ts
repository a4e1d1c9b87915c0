import type { KubernetesObject } from '../../api/object.ts';
import type { ClusterState } from '../../predict/objects/cluster-state.ts';

/** What is read of a workload cluster, once for each call of a hook. */
export interface WorkloadState extends ClusterState {
  /**
   * The objects that affect rendering, pools and nodes included, without what controllers generated from them, as
   * `shale plan` reads them: `offlineCluster(objects, { isLive: true })` is what the cluster has.
   */
  readonly objects: readonly KubernetesObject[];
  /** gitVersion of the API server: `v1.35.1`. */
  readonly serverVersion: string;
}
