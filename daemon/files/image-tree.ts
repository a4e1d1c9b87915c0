import { stat } from 'node:fs/promises';
import path from 'node:path';
import { ignoreMissing } from './tree-entry.ts';

/**
 * Where a root has the whole tree of its image that has no /usr/etc: bootc makes none where it keeps deployments in
 * composefs, and mounts each deployment's own /etc over the image's (daemon/os/bootc-composefs/deployment-trees.ts).
 */
export const IMAGE_TREE = '/run/shale/image';

/**
 * @param root of a deployment, or the running root.
 * @returns where it has its image's own version of /etc, absolute within the root. @throws the file system's errors.
 */
export async function imageEtcIn(root: string): Promise<string> {
  const apart = `${IMAGE_TREE}/etc`;
  return (await stat(path.join(root, apart)).catch(ignoreMissing)) === undefined ? '/usr/etc' : apart;
}

/** @param name below /etc. @returns its place in an image's own version of /etc. @param imageEtc see imageEtcIn. */
export function inImageEtc(imageEtc: string, name: string): string {
  return imageEtc + name.slice('/etc'.length);
}
