import { createHash } from 'node:crypto';

/**
 * Identifies a change from MachineConfigs to nodes: 32 hexadecimal digits that every process computes and adds to its
 * logs, events and traces. It is also the trace id (W3C Trace Context, "trace-id").
 */
export type ChangeId = string & { readonly __brand: 'ChangeId' };

/** The suffix of the names that renderPool creates. */
const HASH = /-([a-f0-9]{32})$/;

/**
 * @param renderedConfig name of the rendered config that the change leads to.
 * @returns the hash in that name, which admins see in every status; for a name without a hash, the start of its
 *   SHA-256. Pools with the same content, and a pool that returns to an earlier config, have the same id: the pool and
 *   the time distinguish them.
 */
export function changeOf(renderedConfig: string): ChangeId {
  const hash = HASH.exec(renderedConfig)?.[1];
  return (hash ?? createHash('sha256').update(renderedConfig).digest('hex').slice(0, 32)) as ChangeId;
}
