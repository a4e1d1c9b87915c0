import { byCodeUnit, isArray, isObject, type Json, type JsonObject, stringAt } from '../json.ts';
import { type FieldSet, isEmpty, parseFieldSet, sorted } from './field-set.ts';

/** Who owns fields: two requests are of the same owner if all of this is the same. */
export interface Owner {
  readonly manager: string;
  readonly operation: 'Apply' | 'Update';
  readonly subresource: string;
  /** Which version the fields are of. Who applies is the same owner in every version. */
  readonly apiVersion: string;
}

/** What an owner owns (metav1.ManagedFieldsEntry). */
export interface Ownership extends Owner {
  readonly fields: FieldSet;
  /** metav1.Time; undefined for one that has applied nothing new yet. */
  readonly time?: string | undefined;
  /** The entry as it was read, while nothing has changed. */
  readonly entry?: JsonObject;
}

/** By the key of the owner. */
export type Ownerships = ReadonlyMap<string, Ownership>;

export function ownerKey({ manager, operation, subresource, apiVersion }: Owner): string {
  return JSON.stringify([manager, operation, operation === 'Apply' ? '' : apiVersion, subresource]);
}

/** @returns the ownerships of an object's metadata.managedFields. @throws Error that says what is wrong with one. */
export function readManagedFields(managedFields: Json | undefined): Ownerships {
  const entries = isArray(managedFields) ? managedFields : [];
  return new Map(entries.map(readEntry).map((ownership) => [ownerKey(ownership), ownership]));
}

/** Entries that this server wrote need no second reading, and most writes leave most of them as they are. */
const READ = new WeakMap<JsonObject, Ownership>();

function readEntry(entry: Json, index: number): Ownership {
  if (!isObject(entry)) throw new Error(`managed fields entry ${index} is no object`);
  const known = READ.get(entry);
  if (known !== undefined) return known;
  const operation = stringAt(entry, 'operation');
  const apiVersion = stringAt(entry, 'apiVersion') ?? '';
  const fieldsType = stringAt(entry, 'fieldsType') ?? '';
  if (operation !== 'Apply' && operation !== 'Update')
    throw new Error('operation must be `Apply` or `Update`');
  if (apiVersion === '') throw new Error('apiVersion must not be empty');
  if (fieldsType !== 'FieldsV1') {
    throw new Error(
      fieldsType === ''
        ? `missing fieldsType in managed fields entry ${index}`
        : `invalid fieldsType ${JSON.stringify(fieldsType)} in managed fields entry ${index}`,
    );
  }
  return {
    manager: stringAt(entry, 'manager') ?? '',
    operation,
    subresource: stringAt(entry, 'subresource') ?? '',
    apiVersion,
    time: stringAt(entry, 'time'),
    fields: parseFieldSet(entry['fieldsV1'] ?? {}),
  };
}

/** @returns metadata.managedFields; undefined for no owner at all. */
export function writeManagedFields(ownerships: Ownerships): readonly JsonObject[] | undefined {
  const all = [...ownerships.values()].filter(({ fields }) => !isEmpty(fields));
  return all.length === 0 ? undefined : all.sort(byOwnership).map(writeEntry);
}

/** Appliers first, then by time (apimachinery, sortEncodedManagedFields). */
function byOwnership(a: Ownership, b: Ownership): number {
  return (
    byCodeUnit(a.operation, b.operation) ||
    byCodeUnit(a.time ?? '', b.time ?? '') ||
    byCodeUnit(a.manager, b.manager) ||
    byCodeUnit(a.apiVersion, b.apiVersion) ||
    byCodeUnit(a.subresource, b.subresource)
  );
}

function writeEntry(ownership: Ownership): JsonObject {
  if (ownership.entry !== undefined) return ownership.entry;
  const { manager, operation, subresource, apiVersion, time, fields } = ownership;
  const entry: JsonObject = {
    ...(manager === '' ? {} : { manager }),
    operation,
    apiVersion,
    ...(time === undefined ? {} : { time }),
    fieldsType: 'FieldsV1',
    fieldsV1: sorted(fields),
    ...(subresource === '' ? {} : { subresource }),
  };
  READ.set(entry, { ...ownership, entry });
  return entry;
}
