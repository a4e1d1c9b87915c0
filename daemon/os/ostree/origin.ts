import { type DigestedPullspec, parseDigestedPullspec } from '../../../api/references.ts';

/**
 * Writes a deployment's origin: a key file (GKeyFile) that ostree keeps beside the deployment. The refspec is what
 * `ostree admin upgrade` and `status` read, the group of our own is where a deployment's image is known from.
 *
 * @param ref the commit's ref. @param image absent for what no image made.
 */
export function formatOrigin(ref: string, image?: DigestedPullspec): string {
  const own = image === undefined ? '' : `\n[shale]\nimage=${image}\n`;
  return `[origin]\nrefspec=${ref}\n${own}`;
}

/** @returns the image that an origin names, or nothing when none made the deployment. @throws TypeError for a damaged name. */
export function imageOfOrigin(text: string): DigestedPullspec | undefined {
  let group = '';
  for (const line of text.split('\n')) {
    const heading = /^\[(.*)\]\s*$/.exec(line);
    if (heading?.[1] !== undefined) group = heading[1];
    const image = /^image\s*=\s*(.*?)\s*$/.exec(line);
    if (group === 'shale' && image?.[1] !== undefined) return parseDigestedPullspec(image[1]);
  }
  return undefined;
}
