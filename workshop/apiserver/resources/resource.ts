import type { JsonObject } from '../json.ts';
import type { MergeType } from '../ownership/merge-type.ts';
import type { Cause, ResourceName } from '../status.ts';
import type { StoredObject } from '../stored-object.ts';
import type { Column } from '../table/table.ts';

/** What a schema makes of an object that a client sent. */
export interface Admitted {
  readonly object: JsonObject;
  readonly problems: readonly Cause[];
}

/** The schema of a custom resource: prunes, fills in defaults, validates, and holds the object against its rules. */
export interface Schema {
  admit(object: JsonObject, old?: JsonObject): Admitted;
}

/** What is particular to a kind when its objects are written; everything else is the same for all. */
export interface Strategy {
  /** Fills in what a new object of the kind gets from the API server. */
  readonly onCreate?: (object: JsonObject) => JsonObject;
  /** Changes that every write makes, such as a Secret's stringData into its data. */
  readonly onWrite?: (object: JsonObject) => JsonObject;
  readonly validate?: (object: JsonObject, old?: StoredObject) => readonly Cause[];
}

export type Subresource = 'status' | 'eviction' | 'token' | 'log' | 'scale';

/** One resource of one API version, as discovery lists it. */
export interface Resource extends ResourceName {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly singular: string;
  readonly kind: string;
  readonly listKind: string;
  readonly namespaced: boolean;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly subresources: readonly Subresource[];
  /** Whether metadata.generation counts changes of what the object asks for. */
  readonly generation: boolean;
  /** How server-side apply merges its objects. */
  readonly mergeType: MergeType;
  /** Built-in kinds alone: the API server knows no merge keys of custom resources. */
  readonly strategicMerge: boolean;
  readonly columns: readonly Column[];
  /** Fields that a field selector may name, beside metadata.name and metadata.namespace. */
  readonly selectable: readonly string[];
  readonly strategy: Strategy;
  readonly schema?: Schema;
  /** Of a custom resource: its openAPIV3Schema, for /openapi/v3. */
  readonly openAPI?: JsonObject;
}

/** @returns the bucket of the store that holds a resource's objects, whatever their version. */
export function bucketOf({ group, plural }: ResourceName): string {
  return `${group}/${plural}`;
}

/** @returns `v1`, `apps/v1`. */
export function apiVersionOf({ group, version }: Pick<Resource, 'group' | 'version'>): string {
  return group === '' ? version : `${group}/${version}`;
}
