import { createReadStream } from 'node:fs';
import { pack } from 'tar-stream';
import { by } from '../../api/order.ts';
import type { LayerEntry } from '../../image/layer/entry.ts';
import { tarMode } from '../../image/layer/write-layer.ts';
import { TREE } from '../../predict/image/engine-spec.ts';

/** Name of the Containerfile in a context. */
export const CONTAINERFILE = 'Containerfile';
/** Prefix of secrets' files in a context; the ignore file excludes them from every COPY and ADD. */
const SECRETS = '.shale-secret-';

/** A value that commands may read at /run/secrets/<id> while they run. */
export interface BuildSecret {
  /** `<Secret>/<key>` */
  readonly id: string;
  readonly value: Uint8Array;
}

export interface BuildContext {
  readonly containerfile: string;
  /** The rendered config's files, where the Containerfile reads them. */
  readonly tree: readonly LayerEntry[];
  readonly secrets: readonly BuildSecret[];
}

/** @returns where the secret of that place in the list lies in the context. */
export function secretFile(index: number): string {
  return `${SECRETS}${index}`;
}

/**
 * Writes what an engine is sent: sorted, owned by root, of one time, so that an engine's cache knows it again.
 *
 * @returns a tar archive.
 */
export async function writeBuildContext({ containerfile, tree, secrets }: BuildContext): Promise<Buffer> {
  const archive = pack();
  const file = (name: string, content: Uint8Array, mode: number) =>
    archive.entry({ name, mode: tarMode(mode), uid: 0, gid: 0, mtime: new Date(0) }, Buffer.from(content));
  file(CONTAINERFILE, Buffer.from(containerfile), 0o644);
  // buildah reads .containerignore before .dockerignore, Docker only the latter.
  for (const name of ['.containerignore', '.dockerignore']) file(name, Buffer.from(`${SECRETS}*\n`), 0o644);
  for (const [index, { value }] of secrets.entries()) file(secretFile(index), value, 0o600);
  for (const entry of tree.toSorted(by(({ path }) => path))) {
    if (entry.type === 'file') file(`${TREE}${entry.path}`, entry.content, entry.mode);
  }
  archive.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of archive) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** Values shorter than this are found in any file by chance. */
const SHORTEST = 8;

/**
 * @param file uncompressed layer.
 * @returns the id of a secret whose value stands in it; undefined where none does. A value that was encoded or cut is
 *   not found: this catches a copy, not an intent.
 */
export async function findSecret(file: string, secrets: readonly BuildSecret[]): Promise<string | undefined> {
  const values = secrets
    .map(({ id, value }) => ({ id, value: trimmed(value) }))
    .filter(({ value }) => value.length >= SHORTEST);
  if (values.length === 0) return undefined;
  const longest = Math.max(...values.map(({ value }) => value.length));
  let window: Buffer = Buffer.alloc(0);
  for await (const chunk of createReadStream(file)) {
    // A value may begin in one chunk and end in the next.
    window = Buffer.concat([window.subarray(-(longest - 1)), chunk as Buffer]);
    const match = values.find(({ value }) => window.includes(value));
    if (match !== undefined) return match.id;
  }
  return undefined;
}

/** Without the line feed at its end, which a copy may lack. */
function trimmed(value: Uint8Array): Buffer {
  return Buffer.from(Buffer.from(value).toString('latin1').trim(), 'latin1');
}
