import { canonicalJson } from '../../machineconfig/canonical-json.ts';
import { isJsonObject, type Json, type JsonObject } from '../contract/machine-objects.ts';
import type { MachineSettings } from '../contract/settings.ts';
import type { Writable } from './machine-parts.ts';

interface ImageRead {
  readonly image: Writable<string> | undefined;
  /** The spec without the image. */
  readonly rest: JsonObject;
}

/**
 * @param spec of an infrastructure machine.
 * @returns the reference that its image field stands for, and everything else; without settings the field is as any
 *   other.
 */
export function readImage(spec: JsonObject, { imagePath, imageRepository }: MachineSettings): ImageRead {
  if (imagePath === undefined || imageRepository === undefined) return { image: undefined, rest: spec };
  const { value, rest } = takeAway(spec, imagePath);
  return { image: value === undefined ? undefined : readValue(value, imageRepository), rest };
}

const TAG = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/;
const DIGEST = /^sha256:[0-9a-f]{64}$/;

function readValue(value: Json, repository: string): Writable<string> {
  if (typeof value === 'string' && DIGEST.test(value))
    return { kind: 'writable', value: `${repository}@${value}` };
  if (typeof value === 'string' && TAG.test(value))
    return { kind: 'writable', value: `${repository}:${value}` };
  const why = `it is neither a tag nor a sha256 digest of ${repository}`;
  return { kind: 'refused', raw: canonicalJson(value), why };
}

function takeAway(
  object: JsonObject,
  [field = '', ...below]: readonly string[],
): { readonly value: Json | undefined; readonly rest: JsonObject } {
  const { [field]: found, ...others } = object;
  if (found === undefined) return { value: undefined, rest: object };
  if (below.length === 0) return { value: found, rest: others };
  if (!isJsonObject(found)) return { value: undefined, rest: object };
  const { value, rest } = takeAway(found, below);
  return { value, rest: { ...others, [field]: rest } };
}
