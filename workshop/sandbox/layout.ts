import path from 'node:path';

/** What is kept from one sandbox to the next. */
export const CACHE = path.join(import.meta.dirname, '../../.shale/cache');

/** Where a sandbox keeps its things. */
export interface SandboxLayout {
  readonly dir: string;
  readonly kubeconfig: string;
  /** What `up` and `down` know of a sandbox that is running: JSON, see SandboxRecord. */
  readonly record: string;
  /** Of the process that holds the sandbox. */
  readonly ownLog: string;
  /** Who asked the embedded API server for what: see control-plane/audit-log.ts. */
  readonly auditLog: string;
  readonly registry: string;
  /** Storage of the builder's container engine. */
  readonly engine: string;
  readonly logs: string;
  readonly nodes: string;
  readonly pods: string;
  node(name: string): string;
  log(name: string): string;
}

/** @returns the paths of a sandbox in this directory. */
export function sandboxLayout(dir: string): SandboxLayout {
  const nodes = path.join(dir, 'nodes');
  const logs = path.join(dir, 'logs');
  return {
    dir,
    kubeconfig: path.join(dir, 'kubeconfig'),
    record: path.join(dir, 'sandbox.json'),
    ownLog: path.join(dir, 'sandbox.log'),
    auditLog: path.join(dir, 'audit.log'),
    registry: path.join(dir, 'registry'),
    engine: path.join(dir, 'engine'),
    logs,
    nodes,
    pods: path.join(dir, 'pods'),
    node: (name) => path.join(nodes, name),
    log: (name) => path.join(logs, `${name}.log`),
  };
}
