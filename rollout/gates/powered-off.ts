import type { Node } from '../../api/kubernetes.ts';
import { annotations } from '../../api/names.ts';
import { flagOn, formatFlag } from '../../api/node-flag.ts';
import type { Hold } from './hold.ts';
import type { SeenNode } from './seen-node.ts';

export const POWERED_OFF = 'PoweredOff';

/**
 * Somebody switched the machine off, until they remove the annotation. One that runs again all the same (power came
 * back, a remediator, a wrong switch) is left alone and reported: a person may work on the machine with its cover open.
 */
export const poweredOff = {
  kind: 'holder',
  hold: ({ node }: Pick<SeenNode, 'node'>): Hold | undefined => {
    const off = formatPoweredOff(node);
    if (off === undefined) return undefined;
    const ready = node.status?.conditions?.find(({ type }) => type === 'Ready');
    const since = Date.parse(flagOn(node, annotations.poweredOff)?.flag?.since ?? '');
    const cameBack = ready?.status === 'True' && Date.parse(ready.lastTransitionTime) > since;
    const message = cameBack
      ? `it runs, but was ${off}; to have it updated: shale maintenance end ${node.metadata.name}`
      : off;
    return { reason: POWERED_OFF, message };
  },
} as const;

/** @returns by whom and why the node's machine was switched off, whether or not it runs; undefined where it was not. */
export function formatPoweredOff(node: Node): string | undefined {
  const flagged = flagOn(node, annotations.poweredOff);
  return flagged && formatFlag('switched off on request', annotations.poweredOff, flagged.flag);
}
