import { MCO_GROUP } from '../api/described-labels.ts';
import type { MachineConfig } from '../api/machine-config.ts';
import { annotations, labels } from '../api/names.ts';
import type { OwnerReference } from '../api/object.ts';
import { IGNITION_VERSION } from './ignition/parse.ts';

/** A file of a generated MachineConfig, which belongs to root and has the mode 0644. */
export interface GeneratedFile {
  readonly path: string;
  readonly text: string;
}

interface Generated {
  readonly name: string;
  /** The pool that the config is for; its name becomes the role. */
  readonly pool: string;
  readonly files: readonly GeneratedFile[];
  readonly controllerVersion: string;
  /** What it is generated from; absent where that is no one object. */
  readonly owner?: OwnerReference | undefined;
}

/** @returns a MachineConfig that a controller generates from other objects, as MCO writes it. */
export function generatedConfig({ name, pool, files, controllerVersion, owner }: Generated): MachineConfig {
  return {
    apiVersion: `${MCO_GROUP}/v1`,
    kind: 'MachineConfig',
    metadata: {
      name,
      labels: { [labels.role]: pool },
      annotations: { [annotations.generatedByController]: controllerVersion },
      ...(owner && { ownerReferences: [owner] }),
    },
    spec: {
      config: { ignition: { version: IGNITION_VERSION }, storage: { files: files.map(fileOf) } },
    },
  };
}

function fileOf({ path, text }: GeneratedFile) {
  const source = `data:text/plain;charset=utf-8;base64,${Buffer.from(text).toString('base64')}`;
  return { path, mode: 0o644, overwrite: true, contents: { source } };
}
