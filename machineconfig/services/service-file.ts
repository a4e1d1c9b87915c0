import type { Problem } from '../problem.ts';

/** A file of a generated MachineConfig. */
export interface ServiceFile {
  readonly path: string;
  readonly text: string;
}

/** What an object about the kubelet or the container runtime becomes on the nodes of a pool. */
export interface ServiceFiles {
  readonly files: readonly ServiceFile[];
  /** Why the object can't take effect; then it has no files. */
  readonly problems: readonly Problem[];
  /** What is valid and may have no effect. */
  readonly warnings: readonly Problem[];
}

/** @returns no files, because of these problems. */
export function refused(problems: readonly Problem[]): ServiceFiles {
  return { files: [], problems, warnings: [] };
}
