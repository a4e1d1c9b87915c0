import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { ClusterAccess } from './control-plane.ts';
import { NODE_KINDS } from './node-kind.ts';

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
  /** Who asked the embedded API server for what: see control-plane.ts. */
  readonly auditLog: string;
  readonly registry: string;
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
    logs,
    nodes,
    pods: path.join(dir, 'pods'),
    node: (name) => path.join(nodes, name),
    log: (name) => path.join(logs, `${name}.log`),
  };
}

/** What others have to know of a sandbox that is up. */
export const SandboxRecord = z.object({
  /** The process that holds everything; SIGTERM takes the sandbox down. */
  pid: z.int().positive(),
  controlPlane: z.string(),
  access: ClusterAccess,
  kubeconfig: z.string(),
  registryHost: z.string(),
  registryCA: z.string(),
  /** By digest. */
  stockImage: z.string(),
  nodes: z.enum(NODE_KINDS),
  /** What runs in the pods of builds that need commands, or why nothing does. */
  engine: z.union([z.object({ kind: z.string() }), z.object({ missing: z.string() })]),
});
export type SandboxRecord = z.infer<typeof SandboxRecord>;

/** Only its owner may read it: it holds the administrator's token. */
export async function writeRecord(layout: SandboxLayout, record: SandboxRecord): Promise<void> {
  await writeFile(layout.record, `${JSON.stringify(record, undefined, 2)}\n`, { mode: 0o600 });
}

/** @returns the record; undefined when there is none. @throws Error that names the file when it can't be understood. */
export async function readRecord(layout: SandboxLayout): Promise<SandboxRecord | undefined> {
  const text = await readFile(layout.record, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (text === undefined) return undefined;
  const parsed = SandboxRecord.safeParse(JSON.parse(text));
  if (!parsed.success) throw new Error(`${layout.record}: ${z.prettifyError(parsed.error)}`);
  return parsed.data;
}
