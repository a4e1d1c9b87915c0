import type { JsonObject } from '../json.ts';
import { StatusError } from '../status.ts';
import { type FieldSet, pathTexts } from './field-set.ts';
import type { Owner } from './managed-fields.ts';

/** Fields that were applied with another value than theirs, with who owns them. */
export interface Conflict {
  readonly owner: Owner;
  readonly fields: FieldSet;
}

/** @returns 409 with a cause for each field, in kube-apiserver's words (apimachinery, NewConflictError). */
export function applyConflict(conflicts: readonly Conflict[]): StatusError {
  const named = conflicts
    .map(({ owner, fields }) => ({ owner: ownerText(owner), paths: pathTexts(fields) }))
    .sort((a, b) => (a.owner < b.owner ? -1 : 1));
  const causes: JsonObject[] = named.flatMap(({ owner, paths }) =>
    paths.map((field) => ({ reason: 'FieldManagerConflict', message: `conflict with ${owner}`, field })),
  );
  return new StatusError(409, 'Conflict', messageOf(named, causes.length), { causes });
}

function messageOf(
  named: readonly { readonly owner: string; readonly paths: readonly string[] }[],
  count: number,
): string {
  const [only] = named;
  if (count === 1 && only !== undefined) {
    return `Apply failed with 1 conflict: conflict with ${only.owner}: ${only.paths.join()}`;
  }
  const lines = named.flatMap(({ owner, paths }) => [
    `conflicts with ${owner}:`,
    ...paths.map((path) => `- ${path}`),
  ]);
  return `Apply failed with ${count} conflicts: ${lines.join('\n')}`;
}

function ownerText({ manager, operation, subresource, apiVersion }: Owner): string {
  const name = JSON.stringify(manager);
  const where = subresource === '' ? name : `${name} with subresource ${JSON.stringify(subresource)}`;
  return operation === 'Update' ? `${where} using ${apiVersion}` : where;
}
