import type { CustomResourceDefinition, DaemonSet, Deployment, Node } from '../../api/kubernetes.ts';
import type { MachineConfig } from '../../api/machine-config.ts';
import { plural } from '../../api/plural.ts';
import { type Finding, findings } from './finding.ts';

/** What a cluster runs beside Shale, as far as the user may read it. */
export interface Neighbourhood {
  readonly definitions: readonly CustomResourceDefinition[];
  readonly workloads: readonly (DaemonSet | Deployment)[];
  readonly nodes: readonly Node[];
  readonly machineConfigs: readonly MachineConfig[];
}

/** Nodes named in a finding; the others are counted. */
const NAMED_NODES = 5;

/**
 * Finds programs that reboot nodes or switch their images by themselves: they hold no node lease, so they may act on a node
 * that Shale is updating, or while it counts another one as unavailable.
 */
export function judgeNeighbours({
  definitions,
  workloads,
  nodes,
  machineConfigs,
}: Neighbourhood): readonly Finding[] {
  const { warning } = findings('neighbours');
  const isDefined = (name: string) => definitions.some(({ metadata }) => metadata.name === name);
  const kured = workloads.find((workload) => runs(workload, 'kured'));
  const flatcar = workloads.find((workload) => runs(workload, 'flatcar-linux-update-operator'));
  const selfUpdating = nodes.filter(isFedoraCoreOS).map(({ metadata }) => metadata.name);
  return [
    ...(isDefined('bootcnodepools.bootc.dev')
      ? [
          warning(
            'the bootc operator is installed, which switches nodes to images of its own',
            'no node may be in a BootcNodePool and in a pool of Shale: move them as docs/explanation/bootc-operator.md describes',
          ),
        ]
      : []),
    ...(kured === undefined
      ? []
      : [
          warning(
            `Kured (${nameOf(kured)}) drains and reboots nodes without their leases`,
            'let it run on other nodes only (spec.template.spec.affinity of its DaemonSet), or remove it: Shale reboots nodes for what it changes',
          ),
        ]),
    ...(isDefined('plans.upgrade.cattle.io')
      ? [
          warning(
            'system-upgrade-controller is installed, whose Plans may drain and reboot nodes without their leases',
            "let no Plan that reboots select nodes of Shale's pools, or pause the pools while one runs (spec.paused)",
          ),
        ]
      : []),
    ...(flatcar === undefined
      ? []
      : [
          warning(
            `the Flatcar Linux Update Operator (${nameOf(flatcar)}) drains and reboots nodes after updates of their own`,
            "keep its nodes out of Shale's pools: none of Shale's OS backends manages Flatcar Linux (docs/os-backends.md)",
          ),
        ]),
    ...(selfUpdating.length === 0 || machineConfigs.some(stopsZincati)
      ? []
      : [
          warning(
            `Zincati updates Fedora CoreOS by itself, and no MachineConfig disables it: ${named(selfUpdating)}`,
            'disable zincati.service with a MachineConfig, as docs/how-to/enable-on-rpm-ostree.md describes',
          ),
        ]),
  ];
}

/** Whether a workload is of a program, by its name or an image in whatever registry. */
function runs({ metadata, spec }: DaemonSet | Deployment, program: string): boolean {
  const isImage = (image = '') => {
    const repository = (image.split('@')[0] ?? '').replace(/:[^:/]*$/, '');
    return repository.slice(repository.lastIndexOf('/') + 1) === program;
  };
  return metadata.name === program || spec.template.spec.containers.some(({ image }) => isImage(image));
}

function nameOf({ kind, metadata }: DaemonSet | Deployment): string {
  return `${kind} ${metadata.namespace}/${metadata.name}`;
}

/** As the kubelet reports PRETTY_NAME of os-release. */
function isFedoraCoreOS({ status }: Node): boolean {
  return String(status?.nodeInfo?.['osImage'] ?? '').startsWith('Fedora CoreOS');
}

interface Units {
  readonly systemd?: {
    readonly units?: readonly {
      readonly name?: string;
      readonly enabled?: boolean;
      readonly mask?: boolean;
    }[];
  };
}

function stopsZincati({ spec }: MachineConfig): boolean {
  const { systemd } = (spec.config ?? {}) as Units;
  return (systemd?.units ?? []).some(
    ({ name, enabled, mask }) => name === 'zincati.service' && (enabled === false || mask === true),
  );
}

function named(nodes: readonly string[]): string {
  const more = nodes.length - NAMED_NODES;
  return `${nodes.slice(0, NAMED_NODES).join(', ')}${more > 0 ? ` and ${plural(more, 'more node')}` : ''}`;
}
