import type { CustomResourceDefinition, DaemonSet, Deployment, Node } from '../../api/kubernetes.ts';
import type { MachineConfig } from '../../api/machine-config.ts';
import { repositoryOf } from '../../api/references.ts';
import { type Finding, findings, namedNodes } from './finding.ts';
import { neighbours, type OperatorRights, type Sign } from './neighbours.ts';

/** What a cluster runs beside Shale, as far as the user may read it. */
export interface Neighbourhood {
  readonly definitions: readonly CustomResourceDefinition[];
  readonly workloads: readonly (DaemonSet | Deployment)[];
  readonly nodes: readonly Node[];
  readonly machineConfigs: readonly MachineConfig[];
  readonly operator: OperatorRights;
}

/**
 * Finds programs that drain, reboot, repair or delete nodes, or switch their images: those that hold no node lease may
 * act on a node that Shale is updating, or while it counts another one as unavailable.
 */
export function judgeNeighbours(neighbourhood: Neighbourhood): readonly Finding[] {
  const known = neighbours.flatMap(({ sign, finding }) => {
    const where = findSign(sign, neighbourhood);
    return where === undefined ? [] : [finding(where, neighbourhood.operator)];
  });
  return [...known, ...judgeZincati(neighbourhood)];
}

/** @returns where a neighbour was found; undefined where it wasn't. */
function findSign(sign: Sign, { definitions, workloads }: Neighbourhood): string | undefined {
  const isDefined = (name = '') => definitions.some(({ metadata }) => metadata.name === name);
  if ('definitions' in sign) return isDefined(sign.without) ? undefined : sign.definitions.find(isDefined);
  const workload = workloads.find((each) => runs(each, sign.program));
  return workload && nameOf(workload);
}

/** It is part of Fedora CoreOS, so that nothing of the cluster shows it. */
function judgeZincati({ nodes, machineConfigs }: Neighbourhood): readonly Finding[] {
  const selfUpdating = nodes.filter(isFedoraCoreOS).map(({ metadata }) => metadata.name);
  if (selfUpdating.length === 0 || machineConfigs.some(stopsZincati)) return [];
  return [
    findings('neighbours').warning(
      `Zincati updates Fedora CoreOS by itself, and no MachineConfig disables it: ${namedNodes(selfUpdating)}`,
      'disable zincati.service with a MachineConfig, as docs/how-to/enable-on-rpm-ostree.md describes',
    ),
  ];
}

/** Whether a workload is of a program, by its name or an image in whatever registry. */
function runs({ metadata, spec }: DaemonSet | Deployment, program: string): boolean {
  const isImage = (image = '') => {
    const repository = repositoryOf(image);
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
