import { z } from 'zod';

/**
 * The common parts of Kubernetes objects (API conventions, "Objects" and "Metadata"), as types and as schemas.
 */

/** Characters of the longest message in a status, as metav1.Condition has it. */
export const LONGEST_MESSAGE = 32_768;

export const OwnerReference = z.object({
  apiVersion: z.string(),
  kind: z.string(),
  name: z.string(),
  uid: z.string(),
  controller: z.boolean().exactOptional(),
  blockOwnerDeletion: z.boolean().exactOptional(),
});
export type OwnerReference = z.infer<typeof OwnerReference>;

export interface ObjectMeta {
  readonly name: string;
  readonly generateName?: string;
  readonly namespace?: string | undefined;
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
  readonly generation?: number | undefined;
  /** RFC 3339, as the API server wrote it. */
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly annotations?: Readonly<Record<string, string>> | undefined;
  readonly finalizers?: readonly string[];
  readonly ownerReferences?: readonly OwnerReference[];
}

export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta;
}

/** An object before its creation: the API server sets uid, resourceVersion and, with generateName, the name. */
export type NewObject<T extends KubernetesObject> = Omit<T, 'metadata' | 'status'> & {
  readonly metadata: Partial<ObjectMeta>;
};

/**
 * A kind: where the API server serves it, and the TypeScript type of its objects. `T` has no value at run time; it
 * gives the results of a client their type.
 */
export interface Kind<T extends KubernetesObject> {
  /** '' for the core group. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
  readonly _object?: T;
}

/** The API group and version of MCO's kinds. */
export const MCO_V1 = 'machineconfiguration.openshift.io/v1';

/** @returns a kind whose objects are in no namespace. */
export function clusterKind<T extends KubernetesObject>(apiVersion: string, kind: string): Kind<T> {
  return { ...resourceOf(apiVersion, kind), namespaced: false };
}

/** @returns a kind whose objects are in namespaces. */
export function namespacedKind<T extends KubernetesObject>(apiVersion: string, kind: string): Kind<T> {
  return { ...resourceOf(apiVersion, kind), namespaced: true };
}

/** The plural is the one that Kubernetes guesses, too (apimachinery, meta.UnsafeGuessKindToResource). */
function resourceOf(apiVersion: string, kind: string) {
  const [version = '', group = ''] = apiVersion.split('/').reverse();
  return { group, version, kind, plural: `${kind.toLowerCase().replace(/y$/, 'ie')}s` };
}

/**
 * The apiVersion of a kind's objects.
 *
 * @returns `v1` for the core group, else `group/version`.
 */
export function apiVersionOf(kind: Kind<never> | Kind<KubernetesObject>): string {
  return kind.group === '' ? kind.version : `${kind.group}/${kind.version}`;
}

/** The metadata.generation that a status reflects. */
export const ObservedGeneration = z
  .int()
  .min(0)
  .describe('The generation of the object that the status reflects.');

export const RelatedObject = z.object({
  group: z.string().describe('API group of the object.'),
  resource: z.string().describe('Resource name of the object, such as machineosbuilds.'),
  namespace: z.string().exactOptional().describe('Namespace of the object, if namespaced.'),
  name: z.string().describe('Name of the object.'),
});

/** RFC 3339. */
export const Timestamp = z.string().meta({ format: 'date-time' });

/** metav1.Condition with the limits that the API machinery sets. */
export const Condition = z
  .object({
    type: z
      .string()
      .max(316)
      .regex(
        /^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$/,
      )
      .describe('Type of the condition, in CamelCase.'),
    status: z.enum(['True', 'False', 'Unknown']).describe('Status of the condition.'),
    observedGeneration: ObservedGeneration.exactOptional(),
    lastTransitionTime: Timestamp.describe('When the status of the condition last changed.'),
    reason: z
      .string()
      .max(1024)
      .regex(/^([A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?)?$/)
      .describe('Reason for the last transition, in CamelCase, for programs.'),
    message: z.string().max(LONGEST_MESSAGE).describe('Details of the last transition, for people.'),
  })
  .describe('One aspect of the current state of the object.');
export type Condition = z.infer<typeof Condition>;

/** Conditions that tools read which know nothing of a kind (cluster/readiness.ts). */
export type ReadinessConditionType = 'Ready' | 'Reconciling' | 'Stalled';

/** What these mean when they are True, in Markdown; docs/reference/conditions.md is generated from it. */
export const readinessConditions: Readonly<Record<ReadinessConditionType, string>> = {
  Ready: 'what the spec asks for is reached',
  Reconciling:
    'it is not reached yet, and Shale is working on it or waits for a time or a build; the message says for what',
  Stalled: 'it is not reached, and nothing happens until somebody changes what the message names',
};

/** A list of conditions, one per type. */
export const Conditions = z
  .array(Condition)
  .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] })
  .describe('Conditions of the object, one for each type.');

/**
 * What the API server gives for the status of an object that nothing has reported on (status of
 * CustomResourceDefinitions, as Gateway API has it): for kstatus, one without conditions would be all that it should
 * be.
 */
export const UNREPORTED_STATUS: { conditions: [Condition] } = {
  conditions: [
    {
      type: 'Ready',
      status: 'Unknown',
      reason: 'Pending',
      message: 'Waiting for the first report',
      lastTransitionTime: '1970-01-01T00:00:00Z',
    },
  ],
};

/** @returns whether somebody has reported this status. */
export function isReported<T extends { readonly conditions?: readonly Condition[] }>(
  status: T | undefined,
): status is T {
  const [first, ...others] = status?.conditions ?? [];
  const [unreported] = UNREPORTED_STATUS.conditions;
  const isDefault = first?.type === unreported.type && first.reason === unreported.reason;
  return status !== undefined && !(isDefault && others.length === 0);
}

/** An object's name: a lowercase RFC 1123 subdomain. */
export const ObjectName = z
  .string()
  .min(1)
  .max(253)
  .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/, {
    error: "an object's name: lowercase letters, digits, - and .",
  });

/** A reference to an object of a known kind by its name. */
export const NameReference = z.object({ name: ObjectName });

/**
 * @returns a time as the API server writes one: metav1.Time has whole seconds, and a finer one would differ from what
 * comes back.
 */
export function toSeconds(time: Date): string {
  return time.toISOString().replace(/\.\d+Z$/, 'Z');
}

interface Versioned {
  readonly metadata: Pick<ObjectMeta, 'resourceVersion'>;
}

/** Resource versions of one kind compare as integers (KEP-5504); one that does not is never newer. */
export function isNewer(a: Versioned, b: Versioned): boolean {
  return versionOf(a) > versionOf(b);
}

function versionOf({ metadata }: Versioned): bigint {
  const text = metadata.resourceVersion ?? '';
  return /^\d+$/.test(text) ? BigInt(text) : 0n;
}
