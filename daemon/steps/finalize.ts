import { carryCertificates, handedOverTo } from '../host/certificates/owned-paths.ts';
import type { NodeDeployment } from '../os/backend.ts';
import { writtenPolicyFiles } from '../os/image-policy/keep-image-policy.ts';
import { mergeManaged, readManagedPaths } from '../records/managed-paths.ts';
import { carriedBy } from '../standard/managed-content.ts';
import { untouchedManagedPaths } from '../tree-sync/managed-etc.ts';
import { contentOfConfigs } from './own-content.ts';
import type { DeploymentChange } from './update.ts';
import type { UpdateWork } from './update-context.ts';

/**
 * Makes a staged deployment the next boot, with the /etc that it has to have: the same deployment as was staged before,
 * unless it was undone meanwhile.
 *
 * @param merge what ostree's merge takes along of the running /etc.
 * @returns the deployment, which the next boot takes, also after a loss of power.
 */
export async function finalize(
  work: UpdateWork,
  { image, ...extra }: DeploymentChange,
  merge: 'whole /etc' | 'without what Shale wrote',
): Promise<NodeDeployment> {
  const { ports, signal } = work;
  const { backend, host, relabel } = ports;
  const { root } = await backend.stage(image, { ...extra, evenIfBooted: true, signal });
  const managed =
    merge === 'whole /etc'
      ? new Map<string, string>()
      : await untouchedManagedPaths(
          host.root,
          mergeManaged(
            await handedOverTo(host.root, root),
            await writtenPolicyFiles(host.root),
            await contentOfConfigs({ ...work, root: host.root }, await carriedBy(root)),
            await readManagedPaths(host.root),
          ),
        );
  const staged = await backend.finalizeStaged(managed, signal);
  const carried = await carryCertificates(host.root, staged.root);
  await relabel(staged.root, [...managed.keys(), ...carried], signal);
  return staged;
}
