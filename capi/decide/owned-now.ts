import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineSettings } from '../contract/settings.ts';
import { type MachineParts, type PartKey, type PartName, partKey } from '../mapping/machine-parts.ts';
import { ownedParts } from '../mapping/owned-config.ts';
import { changedParts } from '../mapping/part-changes.ts';

/** What the machines of an owner had before, as far as it is known. */
export type OlderParts =
  | { readonly kind: 'known'; readonly parts: MachineParts }
  /** Nobody can tell any more what they had. `why`: a clause. */
  | { readonly kind: 'gone'; readonly why: string };

/** The parts of an owner's machines. */
export interface OwnerParts {
  /** Of its current template. */
  readonly current: MachineParts;
  readonly older: readonly OlderParts[];
}

export type OwnedNow =
  | { readonly kind: 'owned'; readonly parts: ReadonlySet<PartKey> }
  | { readonly kind: 'unknown'; readonly why: string };

/**
 * Decides which parts of a machine are Shale's to write: those that it has written, and those that the machine's change
 * touches. Whatever else the machine has came with it by cloud-init: to take that over would cost a reboot for nothing,
 * and to remove it isn't Shale's.
 *
 * @param existing the MachineConfig of the pool's owner.
 * @param desired what the machine is to be.
 */
export function ownedNow(
  existing: MachineConfig | undefined,
  { current, older }: OwnerParts,
  desired: MachineParts,
  settings: MachineSettings,
): OwnedNow {
  const owned = alreadyOwned(existing, settings);
  if (owned.kind === 'unknown') return owned;
  const changed = older.flatMap((each) =>
    each.kind === 'known' ? changes(each.parts, current, desired) : [],
  );
  const parts = new Set([...owned.parts, ...changed.map(partKey)]);
  const gone = older.find((each) => each.kind === 'gone');
  const left = partsIn(desired).find((part) => !parts.has(partKey(part)));
  if (gone === undefined || left === undefined) return { kind: 'owned', parts };
  return {
    kind: 'unknown',
    why: `${gone.why}, so nobody can tell whether ${partKey(left)} has changed; delete the Machine to have a new one instead`,
  };
}

/** @returns the parts that Shale has written; unknown where the settings don't say any more what they stand for. */
export function alreadyOwned(existing: MachineConfig | undefined, settings: MachineSettings): OwnedNow {
  try {
    const parts = ownedParts(existing, settings);
    const why = unsettled(parts, settings);
    return why === undefined
      ? { kind: 'owned', parts }
      : { kind: 'unknown', why: `MachineConfig ${existing?.metadata.name} has ${why}` };
  } catch {
    const why = `MachineConfig ${existing?.metadata.name} has something that the extension doesn't write; delete it, and the extension writes it again`;
    return { kind: 'unknown', why };
  }
}

/** Without its setting the template seems to have no image, and machines would go back to another one. */
function unsettled(
  parts: ReadonlySet<PartKey>,
  { imagePath, nodeUser }: MachineSettings,
): string | undefined {
  if (imagePath === undefined && parts.has(partKey({ kind: 'image' })))
    return 'an image, and the setting imagePath is gone from the ExtensionConfig; set it again';
  const own = partKey({ kind: 'keys', user: nodeUser });
  const other = [...parts].find((part) => part.startsWith('keys ') && part !== own);
  return (
    other && `${other}, and the setting nodeUser of the ExtensionConfig is ${nodeUser}; set it as before`
  );
}

/** What the current template changes belongs to the next update of the machine, if it is another one. */
function changes(older: MachineParts, current: MachineParts, desired: MachineParts): readonly PartName[] {
  return isSameMachine(older, current) ? [] : changedParts(older, desired).taken;
}

/** @returns whether two states of a machine have the same parts that Shale can write. */
export function isSameMachine(a: MachineParts, b: MachineParts): boolean {
  return changedParts(a, b).taken.length === 0 && changedParts(b, a).taken.length === 0;
}

function partsIn({ files, ntp, keys, version, image }: MachineParts): readonly PartName[] {
  return [
    ...[...files.keys()].map((path) => ({ kind: 'file' as const, path })),
    ...(ntp === undefined ? [] : [{ kind: 'ntp' as const }]),
    ...[...keys.keys()].map((user) => ({ kind: 'keys' as const, user })),
    ...(version === undefined ? [] : [{ kind: 'version' as const }]),
    ...(image === undefined ? [] : [{ kind: 'image' as const }]),
  ];
}
