import { z } from 'zod';
import { MachineOwner, type MachineReference } from '../../api/machine-owner.ts';
import type { JsonObject, MachineObjects, TypedSpec } from './machine-objects.ts';
import { NotUnderstood } from './not-understood.ts';
import { type MachineSettings, readMachineSettings } from './settings.ts';

/** A Cluster of Cluster API, in the management cluster. */
export interface ClusterReference {
  readonly namespace: string;
  readonly name: string;
}

/** Whose machines a request is about. */
export interface RequestSubject {
  readonly cluster: ClusterReference;
  /** Undefined where labels name none that may drive a pool. */
  readonly owner: MachineOwner | undefined;
  readonly settings: MachineSettings;
}

/** Of CanUpdateMachine and CanUpdateMachineSet. */
export interface CanUpdateRequest extends RequestSubject {
  /** Undefined where the request is about a MachineSet. */
  readonly machine: MachineReference | undefined;
  readonly current: MachineObjects;
  readonly desired: MachineObjects;
}

/** Of UpdateMachine. */
export interface UpdateMachineRequest extends RequestSubject {
  readonly machine: MachineReference;
  readonly desired: MachineObjects;
}

const AnyObject: z.ZodType<JsonObject> = z.record(z.string(), z.json());

const Metadata = z.object({
  name: z.string().min(1),
  namespace: z.string().min(1),
  labels: z.record(z.string(), z.string()).nullish(),
});
type Metadata = z.infer<typeof Metadata>;

const WithCluster = z.looseObject({ clusterName: z.string().min(1) });

const MachineObject = z.object({ metadata: Metadata, spec: AnyObject });
const MachineSetObject = z.object({
  metadata: Metadata,
  spec: z.object({ clusterName: z.string().min(1), template: z.object({ spec: AnyObject }) }),
});
/** The object of a provider. */
const Provided = z.object({ kind: z.string().min(1), spec: AnyObject.nullish() });
const ProvidedTemplate = z.object({
  kind: z.string().endsWith('Template'),
  spec: z.object({ template: z.object({ spec: AnyObject.nullish() }) }),
});

const Objects = z.object({
  machine: MachineObject,
  infrastructureMachine: Provided,
  bootstrapConfig: Provided.nullish(),
});
type Objects = z.infer<typeof Objects>;

const TemplateObjects = z.object({
  machineSet: MachineSetObject,
  infrastructureMachineTemplate: ProvidedTemplate,
  bootstrapConfigTemplate: ProvidedTemplate.nullish(),
});
type TemplateObjects = z.infer<typeof TemplateObjects>;

const settings = z.record(z.string(), z.string()).nullish();
const CanUpdateMachine = z.object({ settings, current: Objects, desired: Objects });
const CanUpdateMachineSet = z.object({ settings, current: TemplateObjects, desired: TemplateObjects });
const UpdateMachine = z.object({ settings, desired: Objects });

/** @param body of a request. @throws {NotUnderstood} */
export function readCanUpdateMachine(body: unknown): CanUpdateRequest {
  const { settings, current, desired } = parsed(CanUpdateMachine, 'CanUpdateMachineRequest', body);
  const { metadata, spec } = current.machine;
  return {
    ...subjectOf(metadata, clusterOf(spec), settings),
    machine: { namespace: metadata.namespace, name: metadata.name },
    current: objectsOf(current),
    desired: objectsOf(desired),
  };
}

/** @param body of a request. @throws {NotUnderstood} */
export function readCanUpdateMachineSet(body: unknown): CanUpdateRequest {
  const { settings, current, desired } = parsed(CanUpdateMachineSet, 'CanUpdateMachineSetRequest', body);
  const { metadata, spec } = current.machineSet;
  return {
    ...subjectOf(metadata, spec.clusterName, settings),
    machine: undefined,
    current: templatesOf(current),
    desired: templatesOf(desired),
  };
}

/** @param body of a request. @throws {NotUnderstood} */
export function readUpdateMachine(body: unknown): UpdateMachineRequest {
  const { settings, desired } = parsed(UpdateMachine, 'UpdateMachineRequest', body);
  const { metadata, spec } = desired.machine;
  const { namespace, name } = metadata;
  return {
    ...subjectOf(metadata, clusterOf(spec), settings),
    machine: { namespace, name },
    desired: objectsOf(desired),
  };
}

function parsed<T>(schema: z.ZodType<T>, what: string, body: unknown): T {
  const result = schema.safeParse(body);
  if (!result.success) throw NotUnderstood.of(what, result.error);
  return result.data;
}

function clusterOf(spec: JsonObject): string {
  return parsed(WithCluster, 'spec of the Machine', spec).clusterName;
}

function subjectOf(
  metadata: Metadata,
  clusterName: string,
  settings: Readonly<Record<string, string>> | null | undefined,
): RequestSubject {
  const { namespace } = metadata;
  return {
    cluster: { namespace, name: clusterName },
    owner: ownerOf(metadata),
    settings: readMachineSettings(settings ?? {}),
  };
}

/** The labels by which Cluster API marks whose Machines and MachineSets are (api/core/v1beta2, machine_types.go). */
const OWNER_LABELS = [
  ['cluster.x-k8s.io/deployment-name', 'MachineDeployment'],
  ['cluster.x-k8s.io/control-plane-name', 'KubeadmControlPlane'],
] as const;

/** Requests have no owner references. */
function ownerOf({ namespace, labels }: Metadata): MachineOwner | undefined {
  for (const [label, kind] of OWNER_LABELS) {
    const owner = MachineOwner.safeParse({ kind, namespace, name: labels?.[label] });
    if (owner.success) return owner.data;
  }
  return undefined;
}

function objectsOf({ machine, infrastructureMachine, bootstrapConfig }: Objects): MachineObjects {
  return {
    machine: machine.spec,
    bootstrap: bootstrapConfig ? specOf(bootstrapConfig) : undefined,
    infrastructure: specOf(infrastructureMachine),
  };
}

function specOf({ kind, spec }: z.infer<typeof Provided>): TypedSpec {
  return { kind, spec: spec ?? {} };
}

function templatesOf({
  machineSet,
  infrastructureMachineTemplate,
  bootstrapConfigTemplate,
}: TemplateObjects): MachineObjects {
  return {
    machine: machineSet.spec.template.spec,
    bootstrap: bootstrapConfigTemplate ? templateSpec(bootstrapConfigTemplate) : undefined,
    infrastructure: templateSpec(infrastructureMachineTemplate),
  };
}

/** The kind of a template is that of its objects and this. */
function templateSpec({ kind, spec }: z.infer<typeof ProvidedTemplate>): TypedSpec {
  return { kind: kind.slice(0, -'Template'.length), spec: spec.template.spec ?? {} };
}
