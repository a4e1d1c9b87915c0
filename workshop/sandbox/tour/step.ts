import path from 'node:path';
import type { Logger } from 'pino';
import { type Deployment, Deployments, type Node, Nodes, type Pod, Pods } from '../../../api/kubernetes.ts';
import { type MachineConfigNode, MachineConfigNodes } from '../../../api/machine-config-node.ts';
import { type MachineConfigPool, MachineConfigPools } from '../../../api/machine-config-pool.ts';
import { type MachineOSBuild, MachineOSBuilds } from '../../../api/machine-os-build.ts';
import { type MachineOSConfig, MachineOSConfigs } from '../../../api/machine-os-config.ts';
import type { KubernetesObject } from '../../../api/object.ts';
import type { ApiClient } from '../../../cluster/api-client.ts';
import type { Informer } from '../../../cluster/informer.ts';
import type { RegistryClient } from '../../../image/registry/registry-client.ts';
import type { SandboxLayout, SandboxRecord } from '../layout.ts';
import { readObjects } from '../manifests/kustomization.ts';
import { type Changes, createWatches, type Look } from '../wait-until.ts';

/** Names of Secrets in Shale's namespace that the tour's images are built with; absent: none. */
export interface TourSecrets {
  readonly pull?: string;
  readonly push?: string;
  /** A command of the Containerfile prints its key `token`. */
  readonly build?: string;
}

/** What a step of the tour works with. */
export interface TourContext {
  readonly client: ApiClient;
  readonly view: ClusterView;
  readonly record: SandboxRecord;
  readonly layout: SandboxLayout;
  readonly registry: RegistryClient;
  readonly secrets: TourSecrets;
  readonly signal: AbortSignal;
  /** Creates or replaces objects. */
  apply(objects: readonly KubernetesObject[]): Promise<void>;
  /** Creates or replaces the objects of files or directories of examples/, by their names there. */
  applyExamples(...names: readonly string[]): Promise<void>;
  /** Waits for a state of the view. @param workloads whose pods' logs may show why it isn't reached. */
  until<T>(what: string, look: () => Look<T>, workloads: readonly string[]): Promise<T>;
  /** Notes what was found to be so. @throws CheckFailed when it isn't. */
  check(what: string, holds: boolean, seen?: unknown): void;
}

/** One step of the tour: it changes something, waits for the result, and checks it. */
export interface TourStep {
  readonly title: string;
  run(tour: TourContext): Promise<void>;
}

/** A step can't be taken on this machine; the tour goes on without it. */
export class StepSkipped extends Error {
  override readonly name = 'StepSkipped';
}

/** What a step expects isn't so. */
export class CheckFailed extends Error {
  override readonly name = 'CheckFailed';

  constructor(what: string, seen: unknown) {
    super(
      seen === undefined ? `check failed: ${what}` : `check failed: ${what}; found: ${JSON.stringify(seen)}`,
    );
  }
}

export const EXAMPLES = path.join(import.meta.dirname, '../../../examples');

/** @returns the objects of files of examples/, by their names there; `''` is all of them. */
export async function readExamples(...names: readonly string[]): Promise<KubernetesObject[]> {
  const objects: KubernetesObject[] = [];
  for (const name of names) objects.push(...(await readObjects(path.join(EXAMPLES, name))));
  return objects;
}

/** The objects that show the progress of the cluster, kept up to date by watches. */
export interface ClusterView {
  readonly changes: Changes;
  readonly pools: Informer<MachineConfigPool>;
  readonly machineConfigNodes: Informer<MachineConfigNode>;
  readonly machineOSConfigs: Informer<MachineOSConfig>;
  readonly builds: Informer<MachineOSBuild>;
  readonly nodes: Informer<Node>;
  readonly pods: Informer<Pod>;
  readonly deployments: Informer<Deployment>;
  /** Ends the watches. */
  close(): Promise<void>;
}

/** @returns the view once everything was listed. @param signal ends the watches too. */
export async function openClusterView(
  client: ApiClient,
  log: Logger,
  signal: AbortSignal,
): Promise<ClusterView> {
  const { changes, open, synced, close } = createWatches(client, log, signal);
  const view = {
    changes,
    pools: open(MachineConfigPools),
    machineConfigNodes: open(MachineConfigNodes),
    machineOSConfigs: open(MachineOSConfigs),
    builds: open(MachineOSBuilds),
    nodes: open(Nodes),
    pods: open(Pods),
    deployments: open(Deployments),
    close,
  };
  await synced();
  signal.throwIfAborted();
  return view;
}
