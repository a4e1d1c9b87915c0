import { z } from 'zod';
import { type MachineConfig, MachineConfigSpec } from '../api/machine-config.ts';
import { annotations } from '../api/names.ts';
import { DEFAULT_LIMITS, type Limits } from './ignition/contents.ts';

const Recorded = z.object({ fileBytes: z.int().positive(), configBytes: z.int().positive() });

/** @returns the annotations that record limits other than the default, for parsing the rendered config later. */
export function recordLimits({ fileBytes, configBytes }: Limits): Readonly<Record<string, string>> {
  if (fileBytes === DEFAULT_LIMITS.fileBytes && configBytes === DEFAULT_LIMITS.configBytes) return {};
  return { [annotations.limits]: JSON.stringify({ fileBytes, configBytes }) };
}

/**
 * @returns the limits that a config was rendered with; the default limits when the record can't be parsed. The name is
 *   no digest of the record, which grants nothing: the operator restores it.
 */
export function recordedLimits({ metadata }: MachineConfig): Limits {
  const text = metadata.annotations?.[annotations.limits];
  if (text === undefined) return DEFAULT_LIMITS;
  try {
    return Recorded.parse(JSON.parse(text));
  } catch {
    return DEFAULT_LIMITS;
  }
}

/** Annotations that say how a rendered config is to be read: its marks, and the limits that it was rendered with. */
const CARRIED: readonly string[] = [annotations.noReboot, annotations.actions, annotations.limits];

/**
 * @returns a rendered config as an image carries it and a node records it: what it is made of and how it is to be read,
 *   and nothing else of the object in the cluster, which is another one each time it is rendered again.
 */
export function carriedConfig({ apiVersion, metadata, spec }: MachineConfig): CarriedConfig {
  const kept = Object.entries(metadata.annotations ?? {}).filter(([key]) => CARRIED.includes(key));
  const annotated = kept.length === 0 ? {} : { annotations: Object.fromEntries(kept) };
  return { apiVersion, kind: 'MachineConfig', metadata: { name: metadata.name, ...annotated }, spec };
}

/** A rendered MachineConfig as far as it says anything of a node. */
export const CarriedConfig = z.object({
  apiVersion: z.string(),
  kind: z.literal('MachineConfig'),
  metadata: z.object({ name: z.string(), annotations: z.record(z.string(), z.string()).exactOptional() }),
  spec: MachineConfigSpec,
});
export type CarriedConfig = z.infer<typeof CarriedConfig>;

const MIB = 1024 * 1024;

/** What the operator writes on a rendered config beside its predictions, and nobody else may. */
const WRITTEN: readonly string[] = [...CARRIED, annotations.osImageStream, annotations.generatedByController];

/**
 * @returns whether two objects of a rendered config are to be read alike: whatever else is written on them is somebody
 * else's.
 */
export function sameRecord(a: MachineConfig, b: MachineConfig): boolean {
  return WRITTEN.every((key) => a.metadata.annotations?.[key] === b.metadata.annotations?.[key]);
}

/** @returns a config with what the operator writes on it as another one has it. */
export function withRecordOf(config: MachineConfig, rendered: MachineConfig): MachineConfig {
  const others = Object.entries(config.metadata.annotations ?? {}).filter(([key]) => !WRITTEN.includes(key));
  const written = Object.entries(rendered.metadata.annotations ?? {}).filter(([key]) =>
    WRITTEN.includes(key),
  );
  return {
    ...config,
    metadata: { ...config.metadata, annotations: Object.fromEntries([...others, ...written]) },
  };
}

/** @returns limits in bytes, or the default limits. @param given in MiB. */
export function limitsInMiB(given: {
  readonly file?: number | undefined;
  readonly config?: number | undefined;
}): Limits {
  return {
    fileBytes: given.file === undefined ? DEFAULT_LIMITS.fileBytes : given.file * MIB,
    configBytes: given.config === undefined ? DEFAULT_LIMITS.configBytes : given.config * MIB,
  };
}
