import type { HolderGate } from './gate.ts';

/**
 * Taints by which others say that they take a node away or repair it, each with what happens. Taints of kubelets and of
 * the node lifecycle controller are not among them, nor are soft ones, which may stay on a node for its whole life: the
 * cluster autoscaler's DeletionCandidateOfClusterAutoscaler (PreferNoSchedule: a node that it may delete one day) and
 * Cluster API's node.cluster.x-k8s.io/outdated-revision (PreferNoSchedule: on each node of an earlier MachineSet).
 */
const TAINTS: Readonly<Record<string, string>> = {
  // kubernetes/autoscaler, cluster-autoscaler/utils/taints/taints.go
  ToBeDeletedByClusterAutoscaler: 'the cluster autoscaler is about to delete the node',
  // kubernetes-sigs/karpenter, pkg/apis/v1/taints.go: "nodes disrupted by Karpenter"
  'karpenter.sh/disrupted': 'Karpenter is about to delete the node',
  // medik8s/node-maintenance-operator, controllers/taint.go
  'medik8s.io/drain': 'a NodeMaintenance drains the node',
  // medik8s/fence-agents-remediation, api/v1alpha1: Medik8sRemediationTaintKey; self-node-remediation has the same
  'medik8s.io/remediation': 'the node is under repair',
  // kubernetes.io/docs, "Non-graceful node shutdown": its pods are deleted by force, and its volumes detached
  'node.kubernetes.io/out-of-service': 'the node is declared out of service',
  // kubevirt/kubevirt, the default of nodeDrainTaintKey
  'kubevirt.io/drain': 'its virtual machines are being migrated away',
  // aws/aws-node-termination-handler, pkg/node, and its TAINT_NODE
  'aws-node-termination-handler/spot-itn': 'AWS is about to take the machine away',
  'aws-node-termination-handler/scheduled-maintenance': 'AWS is about to maintain the machine',
  // GoogleCloudPlatform/k8s-node-termination-handler; the cluster autoscaler knows it, too
  'cloud.google.com/impending-node-termination': 'Google Cloud is about to take the machine away',
};

/** Another controller drains, deletes or repairs the node. */
export const foreignTaint: HolderGate = {
  kind: 'holder',
  hold: ({ node: { spec } }) => {
    const key = spec?.taints?.find((taint) => TAINTS[taint.key] !== undefined)?.key;
    return key === undefined
      ? undefined
      : { reason: 'ForeignTaint', message: `${TAINTS[key]} (taint ${key})` };
  },
};
