import { type NodeConditionType, PREPARE_FAILED, PREPARE_REFUSED } from '../../api/machine-config-node.ts';
import type { PoolConditionType } from '../../api/machine-config-pool.ts';
import { type BuildConditionType, buildFailures } from '../../api/machine-os-build.ts';
import type { MachineOSConfigConditionType } from '../../api/machine-os-config.ts';
import type { Condition } from '../../api/object.ts';
import { ALERTS_UNKNOWN } from '../../rollout/gates/alerts.ts';
import { SLOT_UNKNOWN } from '../../rollout/gates/fleet-lock.ts';
import { QUERIES_UNKNOWN } from '../../rollout/gates/queries.ts';

/** What to do where a condition has this status. In each text NAME stands for the object's name. */
export interface Remedy {
  readonly status: Condition['status'];
  readonly level: 'warning' | 'failure';
  /** Undefined: other conditions have it in more detail, or nobody has to do anything. */
  readonly byReason?: Readonly<Record<string, string | undefined>>;
  /** With any other reason. Absent: those are not reported. */
  readonly fix?: string;
}
type Remedies<Type extends string = string> = Readonly<Partial<Record<Type, Remedy>>>;

const REFUSED: Remedy = {
  status: 'True',
  level: 'failure',
  fix: 'do what the message says: a refusal stays until somebody changes the webhook, the policy, the permission or the object. Shale tries again every minute (docs/runbooks.md#shaleoperatorfailing)',
};
const NOT_STAGED =
  "fix what the message names, such as the node's pull secret (Secret node-pull-secret), its CAs (ConfigMap registry-cas), its network path to the registry, or a full disk (docs/runbooks.md#shalestagingstalled)";

const ofPools: Remedies<PoolConditionType> = {
  Degraded: {
    status: 'True',
    level: 'failure',
    byReason: {
      NodesDegraded: undefined,
      NodesInSeveralPools: 'correct the node selectors of the pools, or the labels of the node',
    },
    fix: 'fix what the message names; shale status NAME has the nodes (docs/runbooks.md#shalenodesdegraded)',
  },
  UpdatesHeld: {
    status: 'True',
    level: 'failure',
    byReason: {
      [ALERTS_UNKNOWN]:
        'correct --alertmanager-url, --alertmanager-token-file or --alertmanager-ca-file of the operator, spec.shale.holdOnAlerts of the pool, or what the message names',
      [QUERIES_UNKNOWN]:
        'correct --prometheus-url, --prometheus-token-file or --prometheus-ca-file of the operator, spec.shale.holdOnQueries of the pool, or what the message names',
      [SLOT_UNKNOWN]:
        'correct --fleetlock-token-file or --fleetlock-ca-file of the operator, spec.shale.fleetLock of the pool, or what the message names',
    },
  },
  NewNodesWaiting: {
    status: 'True',
    level: 'warning',
    byReason: { Overdue: 'fix what the nodes wait for (docs/runbooks.md#shalenewnodesoverdue)' },
  },
  RenderWarning: {
    status: 'True',
    level: 'warning',
    fix: 'correct or remove what the message names in the MachineConfigs of the pool',
  },
  SettingsWarning: {
    status: 'True',
    level: 'warning',
    fix: 'kubectl edit mcp NAME, and change what the message names',
  },
};

const ofNodes: Remedies<NodeConditionType> = {
  NodeDegraded: {
    status: 'True',
    level: 'failure',
    byReason: {
      UnsupportedHost:
        'install an OS that bootc, rpm-ostree or ostree manages, or remove the node from the pools (docs/os-backends.md)',
      ConfigDrift: 'restore what was changed by hand, or run shale repair NAME',
    },
    fix: 'run shale explain NAME to see what the update required (docs/runbooks.md#shalenodesdegraded)',
  },
  UpdatePrepared: {
    status: 'False',
    level: 'failure',
    byReason: { [PREPARE_FAILED]: NOT_STAGED, [PREPARE_REFUSED]: NOT_STAGED },
  },
  StepsFailing: REFUSED,
  DaemonStepsFailing: REFUSED,
  CertificatesApplied: {
    status: 'False',
    level: 'warning',
    byReason: { Applying: undefined },
    fix: 'do what the message says; until then the node keeps the certificates that it has',
  },
  SignaturePolicyApplied: {
    status: 'False',
    level: 'warning',
    byReason: { NotRequired: undefined },
    fix: 'change on the host what the message names (docs/supply-chain.md)',
  },
  PinnedImageSetsDegraded: {
    status: 'True',
    level: 'warning',
    fix: 'fix what the message names; the node tries again (docs/how-to/pinned-images.md)',
  },
};

const ofMachineOSConfigs: Remedies<MachineOSConfigConditionType> = {
  BuildWaiting: {
    status: 'True',
    level: 'warning',
    fix: 'provide what the message names; the builder continues by itself',
  },
  StepsFailing: REFUSED,
  BootImagePublished: {
    status: 'False',
    level: 'warning',
    fix: 'until the tag is moved, install machines by digest: shale node image NAME',
  },
};

const ofBuilds: Remedies<BuildConditionType> = {
  Failed: {
    status: 'True',
    level: 'failure',
    byReason: buildFailures,
    fix: 'fix what the message names (docs/runbooks.md#shalebuildfailed)',
  },
  Building: {
    status: 'True',
    level: 'warning',
    byReason: {
      Retrying:
        'fix what the message names, such as the push Secret, the CAs (ConfigMap registry-cas), or the network path to the registry; the build continues by itself (docs/runbooks.md#shalebuildretrying)',
    },
  },
};

const ofConfiguration: Remedies = {
  Layering: {
    status: 'Unknown',
    level: 'failure',
    fix: 'correct the ConfigMap on-cluster-layering, or write it with shale enable',
  },
  LayeringDegraded: REFUSED,
  Degraded: REFUSED,
  NodeDisruptionPolicyApplied: {
    status: 'False',
    level: 'failure',
    fix: 'correct spec.nodeDisruptionPolicy: kubectl edit machineconfiguration NAME',
  },
  SettingsRefused: { status: 'True', level: 'warning', fix: 'remove the fields that the message names' },
};

/** The kinds whose conditions doctor reads. */
export type ReportingKind =
  | 'MachineConfiguration'
  | 'MachineConfigPool'
  | 'MachineOSConfig'
  | 'MachineOSBuild'
  | 'MachineConfigNode';

/** The conditions of each kind that call for somebody, with what to do. */
export const conditionRemedies: Readonly<Record<ReportingKind, Remedies>> = {
  MachineConfiguration: ofConfiguration,
  MachineConfigPool: ofPools,
  MachineOSConfig: ofMachineOSConfigs,
  MachineOSBuild: ofBuilds,
  MachineConfigNode: ofNodes,
};
