import { createHash } from 'node:crypto';

/**
 * A change on its way from MachineConfigs to nodes: 32 hexadecimal digits that every process works out for itself and
 * says in whatever it tells of the change. It has the form of a trace id (W3C Trace Context, "trace-id"), and is one.
 */
export type ChangeId = string & { readonly __brand: 'ChangeId' };

/** What renderPool ends names with. */
const HASH = /-([a-f0-9]{32})$/;

/**
 * @param renderedConfig name of the rendered config that the change leads to.
 * @returns the hash in that name, so that a change is found by what the admin reads in every status; of a name without
 *   one, the beginning of its SHA-256. Pools that render to the same content, and a pool that goes back to an earlier
 *   config, have the change's id again: the pool and the time tell them apart.
 */
export function changeOf(renderedConfig: string): ChangeId {
  const hash = HASH.exec(renderedConfig)?.[1];
  return (hash ?? createHash('sha256').update(renderedConfig).digest('hex').slice(0, 32)) as ChangeId;
}
