import { by } from '../api/order.ts';
import type {
  ChangeType,
  ConfigChange,
  ConfigField,
  FileAspect,
  NodeConfig,
  NodeDirectory,
  NodeFile,
  NodeLink,
  NodeUnit,
  Owned,
  Owner,
} from './node-config.ts';

/**
 * The differences between two configurations of a node, in terms of the disk: decoded bytes, modes, owners.
 *
 * MCO compares whole file entries, so that a data URL written in another way counts as a change there; here it does
 * not. MCO does not compare directories and links; here they count, because a node could otherwise be Updated without
 * them.
 *
 * @returns the changes, ordered by kind and then by name; empty when the configurations are equivalent.
 */
export function diffNodeConfigs(from: NodeConfig, to: NodeConfig): ConfigChange[] {
  return [
    ...fileChanges(from.files, to.files),
    ...changes(from.directories, to.directories, sameDirectory).map(
      ([path, change]): ConfigChange => ({ kind: 'directory', path, change }),
    ),
    ...changes(from.links, to.links, sameLink).map(
      ([path, change]): ConfigChange => ({ kind: 'link', path, change }),
    ),
    ...changes(from.units, to.units, sameUnit).map(
      ([name, change]): ConfigChange => ({ kind: 'unit', name, change }),
    ),
    ...changes(from.sshKeys, to.sshKeys, sameList).map(
      ([user, change]): ConfigChange => ({ kind: 'sshKey', user, change }),
    ),
    ...changes(from.passwordHashes, to.passwordHashes, Object.is).map(
      ([user, change]): ConfigChange => ({ kind: 'passwordHash', user, change }),
    ),
    ...fieldChanges(from, to),
  ];
}

function fileChanges(from: NodeConfig['files'], to: NodeConfig['files']): ConfigChange[] {
  return changes(from, to, (a, b) => differingAspects(a, b).length === 0).map(([path, change]) => {
    const a = from.get(path);
    const b = to.get(path);
    const what = a === undefined || b === undefined ? (['contents'] as const) : differingAspects(a, b);
    return { kind: 'file', path, change, what };
  });
}

function differingAspects(a: NodeFile, b: NodeFile): FileAspect[] {
  if (a === b) return [];
  const aspects: FileAspect[] = [];
  if (!sameBytes(a.contents, b.contents)) aspects.push('contents');
  if (a.mode !== b.mode) aspects.push('mode');
  if (!sameOwners(a, b)) aspects.push('owner');
  return aspects;
}

function fieldChanges(from: NodeConfig, to: NodeConfig): ConfigChange[] {
  const fields: readonly [ConfigField, boolean][] = [
    // The kernel reads its arguments in order, and the last of two wins.
    ['kernelArguments', sameList(from.kernelArguments, to.kernelArguments)],
    ['kernelType', from.kernelType === to.kernelType],
    ['extensions', sameList([...from.extensions].sort(), [...to.extensions].sort())],
    ['fips', from.fips === to.fips],
    ['osImageURL', from.osImageURL === to.osImageURL],
  ];
  return fields.filter(([, same]) => !same).map(([field]) => ({ kind: 'field', field, change: 'changed' }));
}

/** @returns the keys that differ and how, ordered by code unit. */
function changes<T>(
  from: ReadonlyMap<string, T>,
  to: ReadonlyMap<string, T>,
  same: (a: T, b: T) => boolean,
): [key: string, change: ChangeType][] {
  const changes: [string, ChangeType][] = [];
  for (const [key, a] of from) {
    const b = to.get(key);
    if (b === undefined) changes.push([key, 'removed']);
    else if (a !== b && !same(a, b)) changes.push([key, 'changed']);
  }
  for (const key of to.keys()) if (!from.has(key)) changes.push([key, 'added']);
  return changes.sort(by(([key]) => key));
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a === b || (a.length === b.length && Buffer.compare(a, b) === 0);
}

function sameOwner(a: Owner, b: Owner): boolean {
  // `root` has the id 0 on every system.
  const canonical = (owner: Owner) => ('id' in owner ? owner.id : owner.name === 'root' ? 0 : owner.name);
  return canonical(a) === canonical(b);
}

function sameOwners(a: Owned, b: Owned): boolean {
  return sameOwner(a.user, b.user) && sameOwner(a.group, b.group);
}

function sameDirectory(a: NodeDirectory, b: NodeDirectory): boolean {
  return a.mode === b.mode && sameOwners(a, b);
}

function sameLink(a: NodeLink, b: NodeLink): boolean {
  return a.target === b.target && a.hard === b.hard && sameOwners(a, b);
}

function sameUnit(a: NodeUnit, b: NodeUnit): boolean {
  return (
    a.contents === b.contents &&
    a.enabled === b.enabled &&
    a.masked === b.masked &&
    changes(a.dropins, b.dropins, Object.is).length === 0
  );
}

/** @returns whether two lists have the same texts in the same order. */
export function sameList(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((value, index) => value === b[index]);
}
