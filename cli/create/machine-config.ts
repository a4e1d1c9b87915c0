import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import { labels } from '../../api/names.ts';
import { apiVersionOf } from '../../api/object.ts';
import type { IgnitionConfig, IgnitionFile, Unit } from '../../machineconfig/ignition/config.ts';
import { encodeDataUrl } from '../../machineconfig/ignition/data-url.ts';
import { IGNITION_VERSION } from '../../machineconfig/ignition/parse.ts';
import { jsonOf } from '../../machineconfig/render.ts';
import type { DropInFlag, FileFlag, UnitFlag } from './content-flags.ts';

/** A flag, with the contents of its local file. */
type Read<Flag, Contents> = Flag & { readonly contents: Contents };

/** What a MachineConfig is to say. */
export interface NewMachineConfig {
  readonly name: string;
  readonly role: string;
  readonly files: readonly Read<FileFlag, Uint8Array>[];
  readonly units: readonly Read<UnitFlag, string>[];
  readonly dropIns: readonly Read<DropInFlag, string>[];
  readonly enable: readonly string[];
  readonly disable: readonly string[];
  readonly mask: readonly string[];
  readonly kernelArguments: readonly string[];
}

/**
 * Composes a MachineConfig. Whether it is valid is for parseMachineConfig to say.
 *
 * @returns the object as `kubectl apply` takes it, with files and units in the order of their flags.
 */
export function composeMachineConfig(parts: NewMachineConfig): MachineConfig {
  const { name, role, files, kernelArguments } = parts;
  const units = unitsOf(parts);
  const config: IgnitionConfig = {
    ignition: { version: IGNITION_VERSION },
    ...(files.length === 0 ? {} : { storage: { files: files.map(fileOf) } }),
    ...(units.length === 0 ? {} : { systemd: { units } }),
  };
  const isEmpty = files.length === 0 && units.length === 0;
  return {
    apiVersion: apiVersionOf(MachineConfigs),
    kind: MachineConfigs.kind,
    metadata: { name, labels: { [labels.role]: role } },
    spec: {
      ...(isEmpty ? {} : { config: jsonOf(config) }),
      ...(kernelArguments.length === 0 ? {} : { kernelArguments: [...kernelArguments] }),
    },
  };
}

/** Without `overwrite`, Ignition refuses to provision a machine whose image has the file. */
function fileOf({ path, mode, user, group, contents }: NewMachineConfig['files'][number]): IgnitionFile {
  return {
    path,
    mode,
    overwrite: true,
    ...(user === undefined ? {} : { user }),
    ...(group === undefined ? {} : { group }),
    contents: { source: encodeDataUrl(contents) },
  };
}

/** One entry for each unit, however many flags name it: a second one of a name is refused. */
function unitsOf({ units, dropIns, enable, disable, mask }: NewMachineConfig): Unit[] {
  const byName = new Map<string, Unit>();
  const add = (name: string, change: Partial<Unit>) =>
    byName.set(name, { ...(byName.get(name) ?? { name }), ...change });
  for (const { unit, contents } of units) add(unit, { contents });
  for (const name of enable) add(name, { enabled: true });
  for (const name of disable) add(name, { enabled: false });
  for (const name of mask) add(name, { mask: true });
  for (const { unit, name, contents } of dropIns)
    add(unit, { dropins: [...(byName.get(unit)?.dropins ?? []), { name, contents }] });
  return [...byName.values()];
}

/** @returns units that could be enabled and that no flag enables, disables or masks: most are forgotten. */
export function neitherEnabledNorDisabled({
  units,
  enable,
  disable,
  mask,
}: NewMachineConfig): readonly string[] {
  const decided = new Set([...enable, ...disable, ...mask]);
  return units.flatMap(({ unit, contents }) =>
    /^\[Install\]\s*$/m.test(contents) && !decided.has(unit) ? [unit] : [],
  );
}
