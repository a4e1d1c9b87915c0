/** A value of JSON. Objects of providers have fields that Shale doesn't know. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [field: string]: Json;
}

/**
 * The three objects that make a machine, or what their templates have below `spec.template`: whichever of these a
 * request or the management cluster has, the specs are the same.
 */
export interface MachineObjects {
  /** Spec of the Machine; of a MachineSet or MachineDeployment its `spec.template.spec`. */
  readonly machine: JsonObject;
  /** Undefined: the machine has none. */
  readonly bootstrap: TypedSpec | undefined;
  readonly infrastructure: TypedSpec;
}

/** The spec of an object, or `spec.template.spec` of a template. */
export interface TypedSpec {
  /** Kind of the machine's object, also where this is its template: KubeadmConfig for a KubeadmConfigTemplate. */
  readonly kind: string;
  readonly spec: JsonObject;
}

/** @returns whether a value of JSON has fields. */
export function isJsonObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
