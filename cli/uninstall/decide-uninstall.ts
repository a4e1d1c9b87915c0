import { annotations } from '../../api/names.ts';
import { madeBySwitch } from '../../opt-in/machine-os-configs.ts';
import type { ObservedCluster } from '../observe/observed-cluster.ts';

/** What becomes of nodes that run an image: they go back to the stock image first, or stay as they are for good. */
export type LayeredNodes = 'revert' | 'keep' | undefined;

/**
 * @param wish what the person said; undefined when nothing.
 * @returns why Shale can't be taken away now, and what to do about it; undefined when it can.
 */
export function uninstallObstacle(seen: ObservedCluster, wish: LayeredNodes): string | undefined {
  const held = heldNodes(seen);
  if (held.length > 0) {
    return `${held.join(', ')}: being updated, and would stay cordoned; wait until it is done (shale status), or pause the pool so that no further node begins`;
  }
  const layered = seen.machineConfigNodes.filter(({ status }) => status?.mode === 'Layered');
  if (wish === undefined && (layered.length > 0 || seen.machineOSConfigs.length > 0)) {
    return `layering is on, and ${layered.length} nodes run images: --revert takes them back to the stock image first, one reboot each; --keep leaves them as they are, with nobody to update them`;
  }
  const byHand = seen.machineOSConfigs.filter((config) => !madeBySwitch(config));
  if (wish === 'revert' && byHand.length > 0) {
    const names = byHand.map(({ metadata }) => metadata.name).join(', ');
    return `MachineOSConfig ${names} was made by hand: delete it to have its pool go back to the stock image`;
  }
  return undefined;
}

/** @returns nodes that Shale has cordoned for an update. */
export function heldNodes({ nodes }: Pick<ObservedCluster, 'nodes'>): readonly string[] {
  return nodes
    .filter(({ metadata }) => metadata.annotations?.[annotations.cordonedByShale] !== undefined)
    .map(({ metadata }) => metadata.name)
    .sort();
}
