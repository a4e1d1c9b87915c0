import path from 'node:path';
import type { DaemonSet, Deployment, PodTemplate } from '../../../api/kubernetes.ts';
import type { KubernetesObject } from '../../../api/object.ts';
import { MACHINE_LABEL } from '../cluster-objects.ts';
import type { SandboxRecord } from '../layout.ts';
import { isShaleImage } from '../workloads/pod-process.ts';
import { readKustomization } from './kustomization.ts';

/** A version of Shale that a sandbox can run: its pods run the programs of its checkout. */
export interface InstalledVersion {
  /** Root directory of a checkout of Shale, with its npm packages installed. */
  readonly checkout: string;
  /** What its pods name, so that the sandbox runs that checkout's programs in them. */
  readonly image: string;
}

/** This checkout. */
export const thisVersion: InstalledVersion = {
  checkout: path.resolve(import.meta.dirname, '../../..'),
  image: 'shale:latest',
};

/** @param checkout root directory of another checkout. @returns the version that it is. */
export function otherVersion(checkout: string): InstalledVersion {
  return { checkout, image: 'shale:other' };
}

const OPERATOR = 'shale-operator';

/**
 * @param engine what the sandbox builds with. Without one the builder has none.
 * @returns a version's own manifests, definitions included, as a sandbox installs them: the daemon runs on machines
 *   alone, and no process opens a port on the machine that they share.
 * @throws Error when its manifests can't be read.
 */
export async function versionObjects(
  { checkout, image }: InstalledVersion,
  engine: SandboxRecord['engine'],
): Promise<readonly KubernetesObject[]> {
  const read = (name: string) => readKustomization(path.join(checkout, 'manifests', name));
  const objects = [...(await read('base')), ...(await read('components/admission-policies'))];
  return objects.map((object) => {
    switch (object.kind) {
      case 'Deployment':
        return withTemplate(object as Deployment, (template) =>
          withContainers(template, image, argumentsOf(object, engine)),
        );
      case 'DaemonSet':
        return withTemplate(object as DaemonSet, (template) =>
          onMachinesOnly(withContainers(template, image, ['--metrics-port', '0'])),
        );
      default:
        return object;
    }
  });
}

function argumentsOf({ metadata }: KubernetesObject, engine: SandboxRecord['engine']): readonly string[] {
  if (metadata.name !== OPERATOR) return [];
  const noPorts = ['--metrics-port', '0', '--builder-metrics-port', '0'];
  return [...noPorts, ...('kind' in engine ? [] : ['--engine', 'none'])];
}

function withTemplate<T extends Deployment | DaemonSet>(
  owner: T,
  change: (template: PodTemplate) => PodTemplate,
): T {
  return { ...owner, spec: { ...owner.spec, template: change(owner.spec.template) } };
}

function withContainers(template: PodTemplate, image: string, more: readonly string[]): PodTemplate {
  const containers = template.spec.containers.map((container) => ({
    ...container,
    ...(isShaleImage(container.image) ? { image } : {}),
    args: [...(container.args ?? []), ...more],
  }));
  return { ...template, spec: { ...template.spec, containers } };
}

/** The daemon runs where there is a machine for it to configure. */
function onMachinesOnly(template: PodTemplate): PodTemplate {
  const nodeSelector = { ...template.spec.nodeSelector, [MACHINE_LABEL]: '' };
  return { ...template, spec: { ...template.spec, nodeSelector } };
}
