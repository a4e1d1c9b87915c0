import { formatMachineOwner, type MachineOwner, type MachineReference } from '../../api/machine-owner.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import type { Discovery } from '../../cluster/discovery.ts';
import {
  controllerOf,
  type KubeadmControlPlane,
  KubeadmControlPlanes,
  type Machine,
  MachineDeployments,
  MachineSets,
  type MachineSpec,
  Machines,
  type ObjectReference,
  type ProviderObject,
} from '../contract/cluster-api-kinds.ts';
import type { JsonObject, MachineObjects, TypedSpec } from '../contract/machine-objects.ts';
import { isJsonObject } from '../contract/machine-objects.ts';
import { NotKnownNow } from './clusters.ts';

/** What an owner's machines are to be, and what they were before. */
export interface OwnerTemplates {
  readonly current: MachineObjects;
  /** Of its older MachineSets, or of its other Machines for a control plane. */
  readonly older: readonly OlderTemplate[];
}

/** `gone`: nobody can tell any more what machines had. `why`: a clause. */
export type OlderTemplate =
  | { readonly kind: 'known'; readonly objects: MachineObjects }
  | { readonly kind: 'gone'; readonly why: string };

/** Reads the templates that owners of Machines have, in whichever version their providers serve them. */
export class TemplateReader {
  readonly #client: ApiClient;
  readonly #discovery: Discovery;

  constructor(client: ApiClient, discovery: Discovery) {
    this.#client = client;
    this.#discovery = discovery;
  }

  /**
   * @returns undefined for an owner that doesn't exist.
   * @throws {NotKnownNow} when an object that its current template names can't be found; {ApiError | ApiUnreachable}
   */
  async templatesOf(owner: MachineOwner, signal: AbortSignal): Promise<OwnerTemplates | undefined> {
    switch (owner.kind) {
      case 'MachineDeployment':
        return this.#ofMachineDeployment(owner, signal);
      case 'KubeadmControlPlane':
        return this.#ofControlPlane(owner, signal);
    }
  }

  /**
   * @returns the objects that a Machine has. While Cluster API updates it, they say what it is to be.
   * @throws {NotKnownNow} when one of them can't be found; {ApiError | ApiUnreachable}
   */
  async objectsOf({ spec, metadata }: Machine, signal: AbortSignal): Promise<MachineObjects> {
    return known(await this.#template(spec, metadata.namespace ?? '', signal));
  }

  /**
   * @returns what a control plane's other Machines have; of a MachineDeployment nothing.
   * @throws {ApiError | ApiUnreachable}
   */
  async othersOf(
    owner: MachineOwner,
    machine: MachineReference,
    signal: AbortSignal,
  ): Promise<readonly OlderTemplate[]> {
    if (owner.kind === 'MachineDeployment') return [];
    const { namespace, name } = owner;
    const plane = await this.#client.find(KubeadmControlPlanes, name, { namespace, signal });
    const own = plane === undefined ? [] : await this.#machinesOf(plane, signal);
    const others = own.filter(({ metadata }) => metadata.name !== machine.name);
    if (others.length === 0) return [withoutOthers(owner)];
    return Promise.all(others.map(({ spec }) => this.#template(spec, namespace, signal)));
  }

  async #machinesOf({ metadata: { namespace, uid } }: KubeadmControlPlane, signal: AbortSignal) {
    const { items } = await this.#client.list(Machines, { namespace, signal });
    return items.filter((machine) => controllerOf(machine, KubeadmControlPlanes.kind)?.uid === uid);
  }

  async #ofMachineDeployment({ namespace, name }: MachineOwner, signal: AbortSignal) {
    const deployment = await this.#client.find(MachineDeployments, name, { namespace, signal });
    if (deployment === undefined) return undefined;
    const { items } = await this.#client.list(MachineSets, { namespace, signal });
    const own = items.filter(
      (set) => controllerOf(set, MachineDeployments.kind)?.uid === deployment.metadata.uid,
    );
    const [current, ...older] = await Promise.all(
      [deployment, ...own].map((each) => this.#template(each.spec.template.spec, namespace, signal)),
    );
    // While one of its machines is updated there is the set that it came from.
    const why = `MachineDeployment ${namespace}/${name} has no other MachineSet to compare with`;
    return { current: known(current), older: own.length > 1 ? older : [{ kind: 'gone' as const, why }] };
  }

  /** A control plane has its bootstrap config in itself, and no MachineSets: its Machines say what they have. */
  async #ofControlPlane(owner: MachineOwner, signal: AbortSignal) {
    const { namespace, name } = owner;
    const plane = await this.#client.find(KubeadmControlPlanes, name, { namespace, signal });
    if (plane === undefined) return undefined;
    const { version, kubeadmConfigSpec = {}, machineTemplate } = plane.spec;
    const infrastructure = await this.#spec(machineTemplate?.spec?.infrastructureRef, namespace, signal);
    const own = await this.#machinesOf(plane, signal);
    const older = await Promise.all(own.map(({ spec }) => this.#template(spec, namespace, signal)));
    const machine: JsonObject = version === undefined ? {} : { version };
    const bootstrap = { kind: 'KubeadmConfig', spec: kubeadmConfigSpec };
    return {
      current: known(asTemplate({ machine, bootstrap, infrastructure })),
      // The updated one has what it is to be.
      older: own.length > 1 ? older : [withoutOthers(owner)],
    };
  }

  /** @returns a Machine's own objects, or those that its template names. */
  async #template(spec: MachineSpec, namespace: string, signal: AbortSignal): Promise<OlderTemplate> {
    const configRef = spec.bootstrap?.configRef;
    const [bootstrap, infrastructure] = await Promise.all([
      configRef?.name === undefined ? undefined : this.#spec(configRef, namespace, signal),
      this.#spec(spec.infrastructureRef, namespace, signal),
    ]);
    return asTemplate({ machine: spec as JsonObject, bootstrap, infrastructure });
  }

  async #spec(
    reference: ObjectReference | undefined,
    namespace: string,
    signal: AbortSignal,
  ): Promise<TypedSpec | string> {
    const { apiGroup = '', kind = '', name = '' } = reference ?? {};
    // Of bootstrap configs the hooks have this version, whichever the server prefers.
    const known =
      apiGroup.endsWith('cluster.x-k8s.io') && kind.startsWith('Kubeadm') ? ['v1beta2'] : undefined;
    const served = await this.#discovery.kindOf<ProviderObject>(apiGroup, kind, signal, known);
    const object = served && (await this.#client.find(served, name, { namespace, signal }));
    if (object === undefined) return `${kind} ${namespace}/${name} is gone`;
    const { spec = {} } = object;
    const { template } = spec;
    const inner = isJsonObject(template) ? template['spec'] : undefined;
    const isTemplate = kind.endsWith('Template');
    return {
      kind: isTemplate ? kind.slice(0, -'Template'.length) : kind,
      spec: isTemplate ? (isJsonObject(inner) ? inner : {}) : spec,
    };
  }
}

/** @param parts those that are texts say what isn't there. */
function asTemplate(parts: {
  readonly machine: JsonObject;
  readonly bootstrap: TypedSpec | string | undefined;
  readonly infrastructure: TypedSpec | string;
}): OlderTemplate {
  const { machine, bootstrap, infrastructure } = parts;
  if (typeof bootstrap === 'string') return { kind: 'gone', why: bootstrap };
  if (typeof infrastructure === 'string') return { kind: 'gone', why: infrastructure };
  return { kind: 'known', objects: { machine, bootstrap, infrastructure } };
}

function withoutOthers(plane: MachineOwner): OlderTemplate {
  return { kind: 'gone', why: `${formatMachineOwner(plane)} has no other Machine to compare with` };
}

function known(template: OlderTemplate | undefined): MachineObjects {
  if (template?.kind === 'known') return template.objects;
  throw new NotKnownNow(`what a machine is to be is not known: ${template?.why ?? 'there is no template'}`);
}

/** @returns the owner that decides on a Machine's updates. @throws {ApiError | ApiUnreachable} */
export async function ownerOfMachine(
  client: ApiClient,
  machine: Machine,
  signal: AbortSignal,
): Promise<MachineOwner | undefined> {
  const { namespace = '' } = machine.metadata;
  const plane = controllerOf(machine, KubeadmControlPlanes.kind);
  if (plane !== undefined) return { kind: 'KubeadmControlPlane', namespace, name: plane.name };
  const set = controllerOf(machine, MachineSets.kind);
  const read = set && (await client.findMetadata(MachineSets, set.name, { namespace, signal }));
  const deployment = read && controllerOf(read, MachineDeployments.kind);
  return deployment && { kind: 'MachineDeployment', namespace, name: deployment.name };
}
