import type { MachineConfigPool } from '../api/machine-config-pool.ts';
import type { MachineOSConfig } from '../api/machine-os-config.ts';
import { labels } from '../api/names.ts';
import type { NewObject } from '../api/object.ts';
import { by } from '../api/order.ts';
import { present } from '../api/present.ts';
import { type SwitchSettings, type SwitchState, takesPool } from './switch.ts';

/** Changes of MachineOSConfigs that the layering switch requires. */
export interface MachineOSConfigChanges {
  readonly create: readonly NewObject<MachineOSConfig>[];
  /** Created by the switch, with another spec than it asks for now. */
  readonly replace: readonly MachineOSConfig[];
  readonly delete: readonly MachineOSConfig[];
}

/**
 * Decides which MachineOSConfigs the switch creates, changes and deletes. An admin's own (without the label) is never
 * touched, and its pool gets none from the switch.
 *
 * @param state what the switch asks for; `invalid` changes nothing: the last good state is kept.
 */
export function decideMachineOSConfigs(
  state: SwitchState,
  pools: readonly MachineConfigPool[],
  present: readonly MachineOSConfig[],
): MachineOSConfigChanges {
  if (state.kind === 'invalid') return { create: [], replace: [], delete: [] };
  const selected = state.kind === 'on' ? selectedPools(state.settings, pools) : [];
  const byPool = new Map(present.map((config) => [config.spec.machineConfigPool.name, config]));
  const create: NewObject<MachineOSConfig>[] = [];
  const replace: MachineOSConfig[] = [];
  for (const pool of selected) {
    if (state.kind !== 'on') break;
    const existing = byPool.get(pool);
    const spec = { ...adminsPart(existing), ...specFor(pool, state.settings) };
    if (existing === undefined) create.push(newMachineOSConfig(pool, spec));
    else if (madeBySwitch(existing) && !sameSpec(existing.spec, spec)) replace.push({ ...existing, spec });
  }
  return {
    create,
    replace,
    delete: present.filter(
      (config) => madeBySwitch(config) && !selected.includes(config.spec.machineConfigPool.name),
    ),
  };
}

/** @returns whether the switch created this object, so that it may change and delete it. */
export function madeBySwitch(object: {
  readonly metadata: { readonly labels?: Readonly<Record<string, string>> | undefined };
}): boolean {
  return object.metadata.labels?.[labels.madeBySwitch] === 'true';
}

function selectedPools(settings: SwitchSettings, pools: readonly MachineConfigPool[]): string[] {
  return pools
    .filter((pool) => takesPool(settings, pool))
    .map(({ metadata }) => metadata.name)
    .sort();
}

function specFor(pool: string, settings: SwitchSettings): MachineOSConfig['spec'] {
  return {
    machineConfigPool: { name: pool },
    imageBuilder: { imageBuilderType: 'Job' },
    ...present({
      baseImagePullSecret: secretReference(settings.pullSecret),
      renderedImagePushSecret: secretReference(settings.pushSecret),
    }),
    renderedImagePushSpec: imagePushSpec(settings.imageRepository, pool),
    ...present({ baseImage: settings.baseImage }),
  };
}

function secretReference(name: string | undefined): { readonly name: string } | undefined {
  return name === undefined ? undefined : { name };
}

/** Fields that the switch does not set are the admin's, even in an object that the switch created. */
function adminsPart(existing: MachineOSConfig | undefined): Partial<MachineOSConfig['spec']> {
  if (existing === undefined) return {};
  const { containerFile, packages, buildArguments, buildSecrets } = existing.spec;
  return {
    ...present({ containerFile, packages, buildArguments, buildSecrets }),
  };
}

function newMachineOSConfig(pool: string, spec: MachineOSConfig['spec']): NewObject<MachineOSConfig> {
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineOSConfig',
    metadata: { name: pool, labels: { [labels.madeBySwitch]: 'true' } },
    spec,
  };
}

function sameSpec(a: MachineOSConfig['spec'], b: MachineOSConfig['spec']): boolean {
  const canonical = (spec: MachineOSConfig['spec']) =>
    JSON.stringify(Object.entries(spec).toSorted(by(([key]) => key)));
  return canonical(a) === canonical(b);
}

/** @param imageRepository of the switch. @returns where the images of a pool are pushed. */
export function imagePushSpec(imageRepository: string, pool: string): string {
  return `${imageRepository.replaceAll('{pool}', pool)}:latest`;
}
