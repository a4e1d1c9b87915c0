import path from 'node:path';
import { HostTree } from './host-tree.ts';
import { takeSteps, type WriteStep } from './write-step.ts';

const ROOT = { uid: 0, gid: 0 };

export interface PutFile {
  readonly contents: Uint8Array;
  readonly mode: number;
}

/**
 * Writes a file of root's, whole or not at all and durably, with the directories that are missing above it.
 *
 * @param name absolute, as the host knows it. @throws {HostFileError}
 */
export async function putFile(root: string, name: string, file: PutFile): Promise<void> {
  await put(root, { kind: 'file', name, ...file, ...ROOT });
}

/** As putFile, a symbolic link. */
export async function putLink(root: string, name: string, target: string): Promise<void> {
  await put(root, { kind: 'symlink', name, target, ...ROOT });
}

async function put(root: string, step: WriteStep): Promise<void> {
  await using tree = new HostTree({ root });
  const { name, missingParents } = await tree.locate(step.name);
  const parents = missingParents.map(
    (parent) => ({ kind: 'directory', name: parent, isParent: true, mode: 0o755, ...ROOT }) as const,
  );
  await takeSteps({ root }, [...parents, { ...step, name }]);
}

/** Removes a file or link durably. None there: nothing done. @throws {HostFileError} */
export async function removeFile(root: string, name: string): Promise<void> {
  await using tree = new HostTree({ root });
  const location = await tree.locate(name);
  if ((await tree.stat(location.name)) === undefined) return;
  await takeSteps({ root }, [{ kind: 'remove', name: location.name }]);
}

/** As removeFile; its directory goes with its last file. */
export async function removeFileOfOwnDirectory(root: string, name: string): Promise<void> {
  await removeFile(root, name);
  await using tree = new HostTree({ root });
  const { name: directory, missingParents } = await tree.locate(path.posix.dirname(name));
  if (missingParents.length > 0) return;
  await takeSteps({ root }, [{ kind: 'remove directory', name: directory, evenIfNotEmpty: 'leave' }]);
}
