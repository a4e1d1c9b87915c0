import path from 'node:path';
import type { KubernetesObject } from '../../../api/object.ts';
import type { ApiClient } from '../../../cluster/api-client.ts';
import type { RegistryClient } from '../../../image/registry/registry-client.ts';
import type { SandboxLayout, SandboxRecord } from '../layout.ts';
import { readObjects } from '../manifests/kustomization.ts';
import type { Look } from '../wait-until.ts';
import type { ClusterView } from './cluster-view.ts';

/** What a step of the tour works with. */
export interface TourContext {
  readonly client: ApiClient;
  readonly view: ClusterView;
  readonly record: SandboxRecord;
  readonly layout: SandboxLayout;
  readonly registry: RegistryClient;
  readonly signal: AbortSignal;
  /** Creates or replaces objects. */
  apply(objects: readonly KubernetesObject[]): Promise<void>;
  /** Creates or replaces the objects of files or directories of examples/, by their names there. */
  applyExamples(...names: readonly string[]): Promise<void>;
  /** Waits for something to be so in the view. @param workloads whose pods' logs tell why it isn't. */
  until<T>(what: string, look: () => Look<T>, workloads: readonly string[]): Promise<T>;
  /** Notes what was found to be so. @throws CheckFailed when it isn't. */
  check(what: string, holds: boolean, seen?: unknown): void;
}

/** One step of the tour: it changes something, waits for what comes of it, and looks whether that is right. */
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
