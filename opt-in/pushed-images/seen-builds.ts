import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import type { DigestedPullspec } from '../../api/references.ts';
import type { ObjectChange } from '../../cluster/informer.ts';

/** A build that the operator itself prunes. */
export interface PrunedImages {
  readonly build: MachineOSBuild;
  /** Those of its images that are deleted from the registry. */
  readonly images: readonly DigestedPullspec[];
}

/**
 * What this process has seen of builds that go, and the record doesn't have yet: how those were at last that somebody
 * deleted, because a build may name another image in the moment before, and those that the operator prunes with their
 * images.
 */
export class SeenBuilds {
  readonly #deleted = new Map<string, MachineOSBuild>();
  readonly #pruned = new Map<string, PrunedImages>();

  /** Takes down a change that the watch shows. */
  changed({ type, object }: ObjectChange<MachineOSBuild>): void {
    if (type !== 'DELETED' || this.isPruned(object)) return;
    this.#deleted.set(keyOf(object), object);
  }

  /** Takes down that the images of a build are deleted. To be called before its object is. */
  prune(pruned: PrunedImages): void {
    this.#pruned.set(keyOf(pruned.build), pruned);
  }

  isPruned(build: MachineOSBuild): boolean {
    return this.#pruned.has(keyOf(build));
  }

  deleted(): readonly MachineOSBuild[] {
    return [...this.#deleted.values()];
  }

  pruned(): readonly PrunedImages[] {
    return [...this.#pruned.values()];
  }

  /** To be called once the record has what these builds say. @param exists whether a build still exists. */
  recorded(deleted: readonly MachineOSBuild[], exists: (build: MachineOSBuild) => boolean): void {
    for (const build of deleted) this.#deleted.delete(keyOf(build));
    for (const { build } of this.pruned()) if (!exists(build)) this.#pruned.delete(keyOf(build));
  }
}

/** One that was deleted and created again is another build. */
function keyOf({ metadata }: MachineOSBuild): string {
  return `${metadata.name} ${metadata.uid ?? ''}`;
}
