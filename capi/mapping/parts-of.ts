import { canonicalJson } from '../../machineconfig/canonical-json.ts';
import {
  isJsonObject,
  type Json,
  type JsonObject,
  type MachineObjects,
} from '../contract/machine-objects.ts';
import type { MachineSettings } from '../contract/settings.ts';
import type { MachineFile, MachineParts, Writable } from './machine-parts.ts';
import { readFiles } from './read-files.ts';
import { readImage } from './read-image.ts';
import { readNtp } from './read-ntp.ts';
import { readUsers } from './read-users.ts';

/** The bootstrap config whose fields Shale knows; of any other one a change is a new machine. */
const KUBEADM_CONFIG = 'KubeadmConfig';

/**
 * What Cluster API leaves out of its own comparison, because it never changes or is written to machines as they run
 * (CleanupMachineSpecForDiff in internal/util/inplace).
 */
const NOT_COMPARED: ReadonlySet<string> = new Set([
  'clusterName',
  'bootstrap',
  'infrastructureRef',
  'providerID',
  'minReadySeconds',
  'readinessGates',
  'taints',
]);

/** The same below `deletion`. */
const DELETION_NOT_COMPARED: ReadonlySet<string> = new Set([
  'nodeDrainTimeoutSeconds',
  'nodeVolumeDetachTimeoutSeconds',
  'nodeDeletionTimeoutSeconds',
]);

/**
 * Reads the parts of a machine.
 *
 * @param objects of a machine or of its templates.
 * @param settings of the ExtensionConfig.
 */
export function machinePartsOf(
  { machine, bootstrap, infrastructure }: MachineObjects,
  settings: MachineSettings,
): MachineParts {
  const { image, rest: infrastructureRest } = readImage(infrastructure.spec, settings);
  const isKubeadm = bootstrap?.kind === KUBEADM_CONFIG;
  const { files, ntp, users, ...bootstrapRest } = bootstrap?.spec ?? {};
  const filesRead = readFiles(isKubeadm ? files : undefined, bootstrapRest['format']);
  const usersRead = readUsers(isKubeadm ? users : undefined, settings.nodeUser);
  return {
    version: typeof machine['version'] === 'string' ? machine['version'] : undefined,
    files: filesRead.files,
    ntp:
      isKubeadm && ntp !== undefined ? apartFrom(filesRead.files, readNtp(ntp, settings.ntpFile)) : undefined,
    keys: usersRead.keys,
    image,
    rest: new Map([
      ...fieldsOf('Machine', machineRest(machine)),
      ...kindOf('bootstrap config', bootstrap?.kind),
      ...fieldsOf(bootstrap?.kind ?? '', isKubeadm ? bootstrapRest : (bootstrap?.spec ?? {})),
      ...prefixed(KUBEADM_CONFIG, [...filesRead.rest, ...usersRead.rest]),
      ...kindOf('infrastructure machine', infrastructure.kind),
      ...fieldsOf(infrastructure.kind, infrastructureRest),
    ]),
  };
}

/** Two parts can't both write a file: which content the machine would have is a matter of order. */
function apartFrom(files: MachineParts['files'], ntp: Writable<MachineFile>): Writable<MachineFile> {
  if (ntp.kind === 'refused' || !files.has(ntp.value.path)) return ntp;
  const why = `spec.files has ${ntp.value.path}, too, which the setting ntpFile names`;
  return { kind: 'refused', raw: canonicalJson(ntp.value), why };
}

function machineRest(machine: JsonObject): JsonObject {
  const { version, deletion, ...others } = machine;
  const compared = without(others, NOT_COMPARED);
  const unreadable = version === undefined || typeof version === 'string' ? {} : { version };
  const kept = isJsonObject(deletion) ? without(deletion, DELETION_NOT_COMPARED) : {};
  return { ...compared, ...unreadable, ...(Object.keys(kept).length > 0 && { deletion: kept }) };
}

function without(object: JsonObject, fields: ReadonlySet<string>): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([field]) => !fields.has(field)));
}

type Rest = readonly (readonly [field: string, json: string])[];

function fieldsOf(kind: string, spec: JsonObject): Rest {
  return Object.entries(spec).map(([field, value]: [string, Json]) => [
    `${kind} spec.${field}`,
    canonicalJson(value),
  ]);
}

function prefixed(kind: string, rest: Rest): Rest {
  return rest.map(([field, json]) => [`${kind} ${field}`, json]);
}

function kindOf(what: string, kind: string | undefined): Rest {
  return kind === undefined ? [] : [[`the kind of the ${what}`, kind]];
}
