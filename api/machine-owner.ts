import { z } from 'zod';
import { ObjectName } from './object.ts';
import { formatSchemaError } from './schema-message.ts';

/** Owners of Machines of Cluster API that may drive a pool. */
const MACHINE_OWNER_KINDS = ['MachineDeployment', 'KubeadmControlPlane'] as const;

const Namespace = z
  .string()
  .min(1)
  .max(63)
  .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/, { error: 'the name of a namespace' });

/**
 * The object of Cluster API that a pool's Machines belong to. It is in the management cluster, which may be another one
 * than the pool's.
 */
export const MachineOwner = z.object({
  kind: z
    .enum(MACHINE_OWNER_KINDS, { error: MACHINE_OWNER_KINDS.join(' or ') })
    .describe('Kind of the owner.'),
  namespace: Namespace.describe('Its namespace in the management cluster.'),
  name: ObjectName.describe('Its name.'),
});
export type MachineOwner = z.infer<typeof MachineOwner>;

/** A Machine of Cluster API, in the management cluster. */
export const MachineReference = z.object({ namespace: Namespace, name: ObjectName });
export type MachineReference = z.infer<typeof MachineReference>;

/** @returns `MachineDeployment NAMESPACE/NAME`, for messages and annotations; two owners are one if it is the same. */
export function formatMachineOwner({ kind, namespace, name }: MachineOwner): string {
  return `${kind} ${namespace}/${name}`;
}

/** @returns who drives a pool, as a noun phrase: `Cluster API (MachineDeployment NAMESPACE/NAME)`. */
export function formatDriver(owner: MachineOwner): string {
  return `Cluster API (${formatMachineOwner(owner)})`;
}

/** @param text as {@link formatMachineOwner} writes it. @throws Error that says what of it is wrong. */
export function parseMachineOwner(text: string): MachineOwner {
  const [kind = '', reference = '', ...rest] = text.split(' ');
  try {
    if (rest.length > 0) throw new Error('it has more than one space');
    return MachineOwner.parse({ kind, ...splitReference(reference) });
  } catch (error) {
    throw new Error(
      `${JSON.stringify(text)}: expected an owner such as "MachineDeployment default/workers": ${formatSchemaError(error)}`,
      { cause: error },
    );
  }
}

/** @returns `NAMESPACE/NAME`. */
export function formatMachine({ namespace, name }: MachineReference): string {
  return `${namespace}/${name}`;
}

/** @param text as {@link formatMachine} writes it. @throws Error that says what of it is wrong. */
export function parseMachine(text: string): MachineReference {
  try {
    return MachineReference.parse(splitReference(text));
  } catch (error) {
    throw new Error(
      `${JSON.stringify(text)}: expected a Machine such as "default/workers-7xq2": ${formatSchemaError(error)}`,
      {
        cause: error,
      },
    );
  }
}

/** The schemas refuse a name with another slash. */
function splitReference(text: string): MachineReference {
  const slash = text.indexOf('/');
  if (slash === -1) throw new Error('it has no "/" between namespace and name');
  return { namespace: text.slice(0, slash), name: text.slice(slash + 1) };
}

/** @returns whether both are the same object. */
export function isSameOwner(a: MachineOwner, b: MachineOwner): boolean {
  return a.kind === b.kind && a.namespace === b.namespace && a.name === b.name;
}

/** @returns whether both are the same Machine. */
export function isSameMachineReference(a: MachineReference, b: MachineReference): boolean {
  return a.namespace === b.namespace && a.name === b.name;
}
