import { digestInName } from '../api/references.ts';
import { emptyNodeConfig, type NodeConfig } from '../machineconfig/node-config.ts';
import type { Decision } from './actions.ts';
import { sshdCauses } from './sshd-reload.ts';
import type { ImageState } from './transitions.ts';

/**
 * What a node in standard mode runs: its rendered config, and the stock image that it booted, by digest; '' for one not
 * known.
 */
export interface StandardState extends ImageState {
  /** The backend of its operating system; undefined where it has not reported it. */
  readonly osBackend: string | undefined;
}

/** What layering gives a node in standard mode. */
export interface LayeredState {
  /** Name of the rendered config that the image is built from. */
  readonly config: string;
  /** What the image is based on, by digest; undefined or without a digest where that is not known. */
  readonly base: string | undefined;
  /** A container engine made the base image, or will: more than a config is in the image. */
  readonly byEngine: boolean;
}

export type OptIn =
  /** The node has the content of the image already. */
  | { readonly kind: 'equal' }
  /** `why`: a full clause. */
  | { readonly kind: 'reboot'; readonly why: string };

const SWITCH = 'the node switches from standard to layered mode';

/**
 * Decides whether a node has to reboot to switch from standard to layered mode. `shale enable`, `shale plan` and the
 * node daemon decide by this function from what the images and configs allow; the daemon then compares the disk
 * (docs/decisions/0010-layering-without-reboot.md).
 */
export function decideOptIn(from: StandardState, to: LayeredState): OptIn {
  if (from.config !== to.config) {
    return rebootBecause(`its image has ${to.config} instead of ${from.config || 'no rendered config'}`);
  }
  if (to.byEngine) return rebootBecause('a container engine makes its image');
  const { osBackend } = from;
  if (osBackend === undefined) return rebootBecause('its OS backend is not known');
  if (!writesAtOnce(osBackend)) return rebootBecause(`${osBackend} writes a staged image at shutdown only`);
  const [booted, base] = [digestInName(from.base), digestInName(to.base)];
  if (booted === undefined) return rebootBecause('the image that it booted is not known');
  if (base === undefined) {
    const named = to.base === undefined ? '' : ` ${to.base}`;
    return rebootBecause(`the digest of its base image${named} is not known`);
  }
  if (booted !== base) return rebootBecause(`its image is based on ${to.base} instead of ${from.base}`);
  return { kind: 'equal' };
}

/** @param config that the node runs. @returns what a node does to take an image whose content it has. */
export function decideEqualOptIn(config: NodeConfig): Decision {
  const causes = sshdCauses(emptyNodeConfig, config);
  return { actions: causes.flatMap(({ actions }) => actions), causes };
}

/**
 * @param osBackend as a node reports it.
 * @returns whether what is staged is the next boot from then on, also after a loss of power, with the /etc of that
 *   moment. bootc and rpm-ostree write it, and merge /etc, at shutdown: written earlier, it would lose what is edited
 *   until then.
 */
export function writesAtOnce(osBackend: string): boolean {
  return osBackend === 'ostree';
}

/** @returns why the node reboots, as a closer look found. @param why a clause. */
export function rebootBecause(why: string): Extract<OptIn, { readonly kind: 'reboot' }> {
  return { kind: 'reboot', why: `${SWITCH}, and ${why}` };
}
