import type { Answer, Api, Body } from './api.ts';

interface ApplyOptions {
  readonly force?: boolean;
  readonly dryRun?: boolean;
  readonly subresource?: string;
  readonly token?: string;
}

/** @returns what applies an object server-side, as a field manager, to the API server that the tests have started. */
export function applier(api: () => Api) {
  return (
    path: string,
    object: { readonly metadata: { readonly name: string } },
    manager: string,
    { force = false, dryRun = false, subresource = '', token }: ApplyOptions = {},
  ): Promise<Answer> => {
    const query = new URLSearchParams({
      fieldManager: manager,
      ...(force ? { force: 'true' } : {}),
      ...(dryRun ? { dryRun: 'All' } : {}),
    });
    const url = `${path}/${object.metadata.name}${subresource}?${query}`;
    const contentType = 'application/apply-patch+yaml';
    return api().call('PATCH', url, object, { contentType, ...(token === undefined ? {} : { token }) });
  };
}

/** @returns who owns what, by name: without the times, and in no order that depends on them. */
export function owners({ metadata }: Body): unknown[][] {
  const entries: Record<string, unknown>[] = metadata.managedFields ?? [];
  return entries
    .map(({ manager, operation, subresource, fieldsV1 }) => [
      manager,
      operation,
      fieldsV1,
      ...(subresource === undefined ? [] : [subresource]),
    ])
    .sort(([a], [b]) => (String(a) < String(b) ? -1 : 1));
}
