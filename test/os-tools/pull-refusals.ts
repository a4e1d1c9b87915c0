import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { parseDigestedPullspec } from '../../api/references.ts';
import { readLabels } from './image-store.ts';
import { Refusal, type StandIn } from './stand-in.ts';

/** What ostree's container code, which is a part of both image tools, says of an image that it doesn't pull. */
export interface PullRefusals {
  /** @throws Refusal when the host's policy accepts anything, and signatures are required. */
  requirePolicy(): Promise<void>;
  /** @returns the image's labels. @throws Refusal when the registry doesn't have it, or it isn't one to boot. */
  requireBootable(image: string): Promise<Readonly<Record<string, string>>>;
}

/** @param doing what the tool was doing, before the words of ostree's container code. */
export function pullRefusals({ dir }: StandIn, doing: string): PullRefusals {
  const refuse = (why: string) => new Refusal(`error: ${doing}Preparing import: Fetching manifest: ${why}\n`);
  return {
    requirePolicy: async () => {
      const file = path.join(dir, 'root/etc/containers/policy.json');
      if (!(await readFile(file, 'utf8')).includes('insecureAcceptAnything')) return;
      throw refuse('containers-policy.json specifies a default of `insecureAcceptAnything`; refusing usage');
    },
    requireBootable: async (image) => {
      const labels = await readLabels(dir, parseDigestedPullspec(image));
      const [name = '', digest = ''] = image.split('@');
      if (labels === undefined) {
        throw refuse(
          `failed to invoke method OpenImage: reading manifest ${digest} in ${name}: manifest unknown`,
        );
      }
      if (!('containers.bootc' in labels)) throw refuse('Target image does not have ostree.bootable label');
      return labels;
    },
  };
}
