import { type Finding, findings } from './finding.ts';

/** How a neighbour is found. */
export type Sign =
  /** By one of these CustomResourceDefinitions, where another one is missing. */
  | { readonly definitions: readonly string[]; readonly without?: string }
  /** By the name or an image of a DaemonSet or Deployment. */
  | { readonly program: string };

/** A program that drains, reboots, repairs or deletes nodes, or switches their images. */
interface Neighbour {
  readonly sign: Sign;
  /**
   * @param where the definition or the workload that was found, as `Kind namespace/name` for the latter.
   * @param operator what Shale's operator is allowed to do about it.
   */
  readonly finding: (where: string, operator: OperatorRights) => Finding;
}

/** Rights of the operator that not every installation grants. */
export interface OperatorRights {
  /** It may annotate Machines of Cluster API. False: not, or it is unknown. */
  readonly patchesMachines: boolean;
}

const { ok, warning } = findings('neighbours');

const NODE_HEALTH_CHECKS = 'nodehealthchecks.remediation.medik8s.io';

/** Of Cluster API. */
export const MACHINE_HEALTH_CHECKS = 'machinehealthchecks.cluster.x-k8s.io';
const REPLACE = 'replace machines whose nodes are not Ready for too long, no matter who reboots them';
const TIMEOUTS =
  'give them timeouts that are longer than a reboot of these machines and the 15 minutes after which a node rolls back';

/** What these need is in docs/how-to/maintenance.md, "Other programs that work on nodes", too. */
export const neighbours: readonly Neighbour[] = [
  {
    sign: { definitions: ['bootcnodepools.bootc.dev'] },
    finding: () =>
      warning(
        'the bootc operator is installed, which switches nodes to images of its own',
        'no node may be in a BootcNodePool and in a pool of Shale: move them as docs/explanation/bootc-operator.md describes',
      ),
  },
  {
    sign: { program: 'kured' },
    finding: (where) =>
      warning(
        `Kured (${where}) drains and reboots nodes without their leases`,
        'let it run on other nodes only (spec.template.spec.affinity of its DaemonSet), or remove it: Shale reboots nodes for what it changes',
      ),
  },
  {
    sign: { definitions: ['plans.upgrade.cattle.io'] },
    finding: () =>
      warning(
        'system-upgrade-controller is installed, whose Plans may drain and reboot nodes without their leases',
        "let no Plan that reboots select nodes of Shale's pools, or pause the pools while one runs (spec.paused)",
      ),
  },
  {
    sign: { program: 'flatcar-linux-update-operator' },
    finding: (where) =>
      warning(
        `the Flatcar Linux Update Operator (${where}) drains and reboots nodes after updates of their own`,
        "keep its nodes out of Shale's pools: none of Shale's OS backends manages Flatcar Linux (docs/os-backends.md)",
      ),
  },
  {
    sign: { program: 'cluster-autoscaler' },
    finding: (where) =>
      ok(`the cluster autoscaler (${where}) deletes no node while Shale drains or reboots it`),
  },
  {
    sign: { definitions: ['nodepools.karpenter.sh'] },
    finding: () => ok('Karpenter disrupts no node while Shale drains or reboots it, unless the node expires'),
  },
  {
    sign: { definitions: [MACHINE_HEALTH_CHECKS] },
    finding: (where, { patchesMachines }) =>
      patchesMachines
        ? ok(`MachineHealthChecks (${where}) replace no machine while Shale drains or reboots its node`)
        : warning(
            `MachineHealthChecks (${where}) ${REPLACE}`,
            `install manifests/components/machine-health-checks, so that Shale exempts a machine while it works on its node, or ${TIMEOUTS}`,
          ),
  },
  {
    sign: { definitions: ['machinehealthchecks.machine.openshift.io'] },
    finding: (where) =>
      warning(
        `MachineHealthChecks (${where}) ${REPLACE}`,
        `${TIMEOUTS}: they can't be told to leave a single machine alone`,
      ),
  },
  {
    sign: { definitions: [NODE_HEALTH_CHECKS] },
    finding: () => ok("medik8s' Node Health Check takes the node lease before it has a node remediated"),
  },
  {
    sign: {
      definitions: [
        'selfnoderemediations.self-node-remediation.medik8s.io',
        'fenceagentsremediations.fence-agents-remediation.medik8s.io',
        'machinedeletionremediations.machine-deletion-remediation.medik8s.io',
      ],
      without: NODE_HEALTH_CHECKS,
    },
    finding: (where) =>
      warning(
        `a remediator of medik8s is installed (${where}), which takes no node lease itself`,
        'have NodeHealthChecks create its remediations: they take the node lease first',
      ),
  },
  {
    sign: { definitions: ['nodemaintenances.nodemaintenance.medik8s.io'] },
    finding: () => ok("medik8s' Node Maintenance Operator and Shale take the same node leases"),
  },
  {
    sign: { definitions: ['nodemaintenances.nodemaintenance.kubevirt.io'] },
    finding: () =>
      warning(
        "KubeVirt's former Node Maintenance Operator is installed, whose NodeMaintenances Shale doesn't read",
        "use shale maintenance or medik8s' Node Maintenance Operator; until then Shale skips a node only once it is cordoned",
      ),
  },
];
