import { isDeepStrictEqual } from 'node:util';
import { canonicalJson } from '../../machineconfig/canonical-json.ts';
import type { ObjectPatches } from '../contract/answers.ts';
import {
  isJsonObject,
  type Json,
  type JsonObject,
  type MachineObjects,
} from '../contract/machine-objects.ts';
import type { MachineSettings } from '../contract/settings.ts';

/** Where the spec of an object is: in the object of a machine, or in a template of one. */
export type SpecPlace = 'machine' | 'template';

/** What Shale takes over of a KubeadmConfig, as far as no change is refused. */
const BOOTSTRAP_FIELDS = ['files', 'ntp', 'users'] as const;

/**
 * The patches by which current becomes desired. Only for changes of which none is refused: they then differ in fields
 * that Shale takes over, and in what Cluster API doesn't compare.
 *
 * @param place of the specs in the objects that are patched.
 * @returns JSON merge patches: the same for the same objects, with fields in order.
 */
export function patchesBetween(
  current: MachineObjects,
  desired: MachineObjects,
  { imagePath }: Pick<MachineSettings, 'imagePath'>,
  place: SpecPlace,
): ObjectPatches {
  const inPlace = (patch: JsonObject) => patchText(patch, place);
  return {
    machine: inPlace(only(['version'], current.machine, desired.machine)),
    bootstrap: inPlace(only(BOOTSTRAP_FIELDS, current.bootstrap?.spec ?? {}, desired.bootstrap?.spec ?? {})),
    infrastructure: inPlace(
      imagePath === undefined ? {} : at(imagePath, current.infrastructure.spec, desired.infrastructure.spec),
    ),
  };
}

function patchText(patch: JsonObject, place: SpecPlace): string | undefined {
  if (Object.keys(patch).length === 0) return undefined;
  return canonicalJson({ spec: place === 'machine' ? patch : { template: { spec: patch } } });
}

function only(fields: readonly string[], from: JsonObject, to: JsonObject): JsonObject {
  const patch = fields.flatMap((field) => change(field, from[field], to[field]));
  return Object.fromEntries(patch);
}

/** @returns a patch of the one field that a path leads to. */
function at([field = '', ...below]: readonly string[], from: JsonObject, to: JsonObject): JsonObject {
  const [before, after] = [from[field], to[field]];
  if (below.length === 0) return Object.fromEntries(change(field, before, after));
  if (!isJsonObject(before) || !isJsonObject(after)) return {};
  const patch = at(below, before, after);
  return Object.keys(patch).length === 0 ? {} : { [field]: patch };
}

/** RFC 7386: null removes a field, an object is merged, and anything else takes its place, a list as a whole. */
function change(field: string, from: Json | undefined, to: Json | undefined): [string, Json][] {
  if (isDeepStrictEqual(from, to)) return [];
  if (to === undefined) return [[field, null]];
  if (!isJsonObject(from) || !isJsonObject(to)) return [[field, to]];
  const fields = [...new Set([...Object.keys(from), ...Object.keys(to)])];
  return [[field, only(fields, from, to)]];
}
