import { parseRollback } from '../../api/annotation-requests.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { annotations } from '../../api/names.ts';
import { layeredPools, meaningOf, type SwitchData } from './switch-data.ts';

/** The data of the layering switch before and after a command. */
interface SwitchChange {
  readonly from: SwitchData;
  readonly to: SwitchData;
  /** Pools whose mode the switch doesn't decide: an admin created their MachineOSConfig. */
  readonly notBySwitch: (pool: string) => boolean;
}

/**
 * A pool stays rolled back for as long as the target that it was rolled back from stays the same. Another mode, or
 * another image, ends it, and the pool would go to what it was rolled back from.
 *
 * @returns why the change must not be written, one line for each pool whose rollback it would end; empty when it may.
 */
export function endedRollbacks(
  pools: readonly Pick<MachineConfigPool, 'metadata'>[],
  { from, to, notBySwitch }: SwitchChange,
): readonly string[] {
  const before = layeredPools(meaningOf(from), pools);
  const after = layeredPools(meaningOf(to), pools);
  const otherImages = isOtherImage(from, to);
  return pools.flatMap(({ metadata: { name, annotations: of = {} } }) => {
    const request = of[annotations.rollback];
    const isLayered = after.includes(name);
    const isTouched = before.includes(name) !== isLayered || (isLayered && otherImages);
    if (request === undefined || !isTouched || notBySwitch(name)) return [];
    return [
      `pool ${name} is held by a rollback${formatRequest(request)}, and this change would end it: first clear it with shale rollback ${name} --clear`,
    ];
  });
}

/** Settings that lead to another image of the same rendered config. */
const IMAGE_SETTINGS = ['imageRepository', 'baseImage'];

/** @returns whether a change of the switch's data gives every layered pool another image. */
export function isOtherImage(from: SwitchData, to: SwitchData): boolean {
  return IMAGE_SETTINGS.some((key) => from[key] !== to[key]);
}

/**
 * @param text of the annotation; one that can't be parsed stops the pool all the same, and its conditions report why.
 */
function formatRequest(text: string): string {
  try {
    const { config, image, by, reason } = parseRollback(text);
    const why = `${by === '' ? '' : ` by ${by}`}${reason === '' ? '' : `: ${reason}`}`;
    return ` at ${image ?? config}${why === '' ? '' : ` (rolled back${why})`}`;
  } catch {
    return '';
  }
}
