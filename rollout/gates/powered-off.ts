import { annotations } from '../../api/names.ts';
import { flagOn, formatFlag } from './flag.ts';
import type { Hold } from './hold.ts';
import type { SeenNode } from './seen-node.ts';

/**
 * The machine is flagged as switched off. A node that became Ready after the flag was set has come back: the flag may be left on
 * it.
 */
export const poweredOff = {
  kind: 'holder',
  hold: ({ node }: Pick<SeenNode, 'node'>): Hold | undefined => {
    const flagged = flagOn(node, annotations.poweredOff);
    if (flagged === undefined) return undefined;
    const ready = node.status?.conditions?.find(({ type }) => type === 'Ready');
    const { flag } = flagged;
    const cameBack =
      flag !== undefined &&
      ready?.status === 'True' &&
      Date.parse(ready.lastTransitionTime) > Date.parse(flag.since);
    if (cameBack) return undefined;
    return {
      reason: 'PoweredOff',
      message: formatFlag('switched off on request', annotations.poweredOff, flag),
    };
  },
} as const;
