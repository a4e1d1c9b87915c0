import type { Grant, MachineConfigNodeSpec, UpdatePlan } from '../../api/machine-config-node.ts';
import type { DigestedPullspec } from '../../api/references.ts';
import type { Current } from '../records/current.ts';

/** What the operator wants of the node. */
export type Target =
  | { readonly mode: 'Layered'; readonly config: string; readonly image: DigestedPullspec }
  /** `osImage` absent: the OS image is left as it is, or, coming from a layered image, is that image's base. */
  | { readonly mode: 'Standard'; readonly config: string; readonly osImage?: string };

/** @returns the target that a MachineConfigNode's spec names. */
export function targetOf(spec: MachineConfigNodeSpec): Target {
  const config = spec.configVersion.desired;
  if (spec.configImage !== undefined) {
    // The API server has checked the form by the CRD's pattern.
    return { mode: 'Layered', config, image: spec.configImage.desiredImage as DigestedPullspec };
  }
  return { mode: 'Standard', config, ...(spec.osImage === undefined ? {} : { osImage: spec.osImage }) };
}

/** @returns whether the node runs the target already. */
export function isAt(target: Target, current: Current | undefined): boolean {
  if (current === undefined || current.mode !== target.mode || current.config !== target.config) return false;
  if (target.mode === 'Layered') return current.mode === 'Layered' && current.image === target.image;
  return target.osImage === undefined || target.osImage === '' || current.baseImage === target.osImage;
}

/** @returns whether a plan or a grant is for this target and no other. */
export function isFor(given: Pick<Grant | UpdatePlan, 'config' | 'image'>, target: Target): boolean {
  const image = target.mode === 'Layered' ? target.image : undefined;
  return given.config === target.config && given.image === image;
}

/** @returns the target in words, for logs, events and conditions. */
export function targetInWords(target: Target): string {
  return target.mode === 'Layered'
    ? `${target.config} in ${target.image}`
    : `${target.config} in standard mode`;
}
