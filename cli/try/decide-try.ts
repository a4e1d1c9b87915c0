import type { MachineConfig } from '../../api/machine-config.ts';
import { annotations } from '../../api/names.ts';
import type { NewObject } from '../../api/object.ts';
import {
  decideTry,
  isSameConfig,
  isTried,
  type TryTerms,
  triedConfig,
} from '../../machineconfig/tried-config.ts';

/** What starting a try does with one MachineConfig. */
export type TryStart =
  /** `replaces` is absent for one that is created. */
  | { readonly kind: 'write'; readonly config: MachineConfig; readonly replaces: boolean }
  /** It is so already, by this try or without one. */
  | { readonly kind: 'unchanged'; readonly name: string; readonly until?: string }
  | { readonly kind: 'refused'; readonly why: string };

/**
 * Decides for one MachineConfig of a change. A repeated command changes nothing.
 *
 * @param current the MachineConfig of that name; undefined: there is none.
 */
export function decideStart(
  current: MachineConfig | undefined,
  wanted: NewObject<MachineConfig>,
  terms: TryTerms,
): TryStart {
  const { name = '' } = wanted.metadata;
  const refused = (why: string): TryStart => ({ kind: 'refused', why: `MachineConfig ${name}: ${why}` });
  if (current?.metadata.annotations?.[annotations.generatedByController] !== undefined)
    return refused('a controller generates it; change what it is generated from');
  const active = current === undefined ? undefined : decideTry(current, Number.NEGATIVE_INFINITY);
  if (active?.kind === 'unreadable')
    return refused(`its annotation ${annotations.try} can't be read: ${active.why}`);
  if (current !== undefined && isSameConfig(current, wanted)) {
    return active?.kind === 'waits'
      ? { kind: 'unchanged', name, until: active.request.until }
      : { kind: 'unchanged', name };
  }
  if (active?.kind === 'waits') {
    const { by, until } = active.request;
    return refused(
      `another change${by === '' ? '' : ` of ${by}`} is being tried until ${until}; confirm or cancel it first`,
    );
  }
  try {
    const config = triedConfig(current, wanted, terms);
    return { kind: 'write', config, replaces: current !== undefined };
  } catch (error) {
    return { kind: 'refused', why: error instanceof Error ? error.message : String(error) };
  }
}

/** The MachineConfigs whose try a command ends, and the named ones that have none. */
export interface TryEnd {
  readonly tried: readonly MachineConfig[];
  /** They exist, and are not being tried. */
  readonly others: readonly string[];
  /** There are none of these names: a try that created one may be undone already. */
  readonly missing: readonly string[];
}

/** @param names what the user named; none: everything that is being tried. */
export function decideEnd(configs: readonly MachineConfig[], names: readonly string[]): TryEnd {
  const all = configs.filter(isTried);
  if (names.length === 0) return { tried: all, others: [], missing: [] };
  const tried = all.filter(({ metadata }) => names.includes(metadata.name));
  const found = new Set(tried.map(({ metadata }) => metadata.name));
  const existing = new Set(configs.map(({ metadata }) => metadata.name));
  const rest = names.filter((name) => !found.has(name));
  return {
    tried,
    others: rest.filter((name) => existing.has(name)),
    missing: rest.filter((name) => !existing.has(name)),
  };
}
