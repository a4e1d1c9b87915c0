import type { GeneratedFile } from '../generated-config.ts';
import type { Problem } from '../problem.ts';

/** What an object about the kubelet or the container runtime becomes on the nodes of a pool. */
export interface ServiceFiles {
  readonly files: readonly GeneratedFile[];
  /** Why the object can't take effect; then it has no files. */
  readonly problems: readonly Problem[];
  /** What is valid and may have no effect. */
  readonly warnings: readonly Problem[];
}

/** @returns no files, because of these problems. */
export function refused(problems: readonly Problem[]): ServiceFiles {
  return { files: [], problems, warnings: [] };
}
