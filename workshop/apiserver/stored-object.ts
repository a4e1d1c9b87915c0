import { isObject, type Json, type JsonObject } from './json.ts';

export interface OwnerReference extends JsonObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
  readonly blockOwnerDeletion?: boolean;
}

/** metav1.ObjectMeta of an object in the store. */
export interface Metadata extends JsonObject {
  readonly name: string;
  readonly namespace?: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly creationTimestamp: string;
  readonly generation?: number;
  readonly deletionTimestamp?: string;
  readonly deletionGracePeriodSeconds?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly finalizers?: readonly string[];
  readonly ownerReferences?: readonly OwnerReference[];
}

/** An object as the store keeps it: complete and valid. */
export interface StoredObject extends JsonObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: Metadata;
}

/** @returns metadata of an object that a client sent, which may lack everything. */
export function metadataOf(object: JsonObject): JsonObject {
  return isObject(object['metadata']) ? object['metadata'] : {};
}

/** @returns labels that are strings. */
export function labelsOf(object: JsonObject): Readonly<Record<string, string>> {
  return stringMap(metadataOf(object)['labels']);
}

/** @returns the string values of a JSON object. */
export function stringMap(value: Json | undefined): Readonly<Record<string, string>> {
  if (!isObject(value)) return {};
  const entries = Object.entries(value).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string',
  );
  return Object.fromEntries(entries);
}

/** metav1.Time: RFC 3339 with whole seconds. */
export function timestamp(time: Date): string {
  return time.toISOString().replace(/\.\d+Z$/, 'Z');
}
