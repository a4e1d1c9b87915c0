import { annotations } from '../../api/names.ts';
import { noun, plural } from '../../api/plural.ts';
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
    return `${held.join(', ')}: an update is in progress, and would leave the ${noun(held.length, 'node')} cordoned; wait until it has finished (shale status), or pause the pool so that no other node starts`;
  }
  const layered = seen.machineConfigNodes.filter(({ status }) => status?.mode === 'Layered');
  if (wish === undefined && (layered.length > 0 || seen.machineOSConfigs.length > 0)) {
    return `layering is enabled, and ${plural(layered.length, 'node')} ${noun(layered.length, 'runs', 'run')} images; use --revert to return nodes to the stock image first, with one reboot each, or --keep to leave them as they are, without further updates`;
  }
  const byHand = seen.machineOSConfigs.filter((config) => !madeBySwitch(config));
  if (wish === 'revert' && byHand.length > 0) {
    const names = byHand.map(({ metadata }) => metadata.name).join(', ');
    return byHand.length === 1
      ? `MachineOSConfig ${names} was created by hand: delete it to return its pool to the stock image`
      : `MachineOSConfigs ${names} were created by hand: delete them to return their pools to the stock image`;
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
