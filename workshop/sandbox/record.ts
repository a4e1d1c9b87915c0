import { readFile, writeFile } from 'node:fs/promises';
import { z } from 'zod';
import { ClusterAccess } from './control-plane/access.ts';
import type { SandboxLayout } from './layout.ts';
import { NODE_KINDS } from './node-kind.ts';

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
  /** The container engine that the builder has; why there is none, in words. */
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
