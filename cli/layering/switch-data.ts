import type { KubernetesObject } from '../../api/object.ts';
import { present } from '../../api/present.ts';
import { readSwitch, type SwitchState, takesPool } from '../../opt-in/switch.ts';

/** The data of the ConfigMap `on-cluster-layering`. */
export type SwitchData = Readonly<Record<string, string>>;

/** The flags of `shale enable`. */
export interface EnableRequest {
  /** Pools to add; empty: those that the switch names, or all if it names none. */
  readonly pools: readonly string[];
  /** Every pool, including pools that are created later. */
  readonly allPools: boolean;
  /** Values of the switch's other keys; absent keys keep their values. */
  readonly settings: Partial<
    Record<'imageRepository' | 'pushSecret' | 'pullSecret' | 'baseImage' | 'signing', string>
  >;
}

/** @returns the switch's data with the request applied; other keys keep their values. */
export function switchedOn(data: SwitchData, { pools, allPools, settings }: EnableRequest): SwitchData {
  const { pools: named, poolSelector, ...rest } = data;
  const isOn = readSwitch({ ...FRAME, data }).kind === 'on';
  // While layering is off, pools that are named now replace those of the last time.
  const before = isOn || pools.length === 0 ? named : undefined;
  const selector = allPools || (!isOn && pools.length > 0) ? undefined : poolSelector;
  const coversAll = isOn && named === undefined && selector === undefined;
  const next = allPools || coversAll ? undefined : joined([...listed(before), ...pools]);
  return {
    ...rest,
    ...settings,
    ...present({ pools: next, poolSelector: selector }),
    enabled: 'true',
  };
}

/**
 * @param pools to return to the stock image; empty: all of them.
 * @param known every pool of the cluster, for a switch that names none.
 * @returns the switch's data, naming the remaining pools. Other keys keep their values, so that `shale enable` restores
 *   them.
 */
export function switchedOff(data: SwitchData, pools: readonly string[], known: readonly Pool[]): SwitchData {
  if (pools.length === 0) return { ...data, enabled: 'false' };
  const layered = layeredPools(readSwitch({ ...FRAME, data }), known);
  const left = layered.filter((pool) => !pools.includes(pool));
  if (left.length === layered.length) return data;
  // An empty list of pools would mean every pool.
  const next = joined(left);
  if (next === undefined) return { ...data, enabled: 'false' };
  const { poolSelector: _, ...rest } = data;
  return { ...rest, pools: next };
}

/** The part of a MachineConfigPool that a switch depends on. */
type Pool = Pick<KubernetesObject, 'metadata'>;

/** @returns the names of the pools of `known` that the switch layers. */
export function layeredPools(state: SwitchState, known: readonly Pool[]): readonly string[] {
  if (state.kind !== 'on') return [];
  const { settings } = state;
  return known.filter((pool) => takesPool(settings, pool)).map(({ metadata }) => metadata.name);
}

/** @returns the merge patch (RFC 7386) from one to the other; undefined when they are equal. */
export function dataPatch(from: SwitchData, to: SwitchData): Record<string, string | null> | undefined {
  const removed = Object.keys(from).filter((key) => to[key] === undefined);
  const set = Object.entries(to).filter(([key, value]) => from[key] !== value);
  if (removed.length + set.length === 0) return undefined;
  return Object.fromEntries([...removed.map((key) => [key, null] as const), ...set]);
}

/** readSwitch uses only the data. */
const FRAME = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: '' } } as const;

/** @returns the state that the data specifies. */
export function meaningOf(data: SwitchData): SwitchState {
  return readSwitch({ ...FRAME, data });
}

function listed(pools: string | undefined): readonly string[] {
  return pools?.split(/[\s,]+/).filter((pool) => pool !== '') ?? [];
}

function joined(pools: readonly string[]): string | undefined {
  return pools.length === 0 ? undefined : [...new Set(pools)].join(',');
}
