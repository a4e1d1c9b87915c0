import { open } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { pack } from 'tar-stream';

/** One file of a bundle. */
export interface BundleFile {
  /** Relative, with `/`. */
  readonly name: string;
  readonly text: string;
}

/** Only its owner reads it: logs and objects of a cluster are nobody else's until they are sent. */
const MODE = 0o600;

/**
 * Writes files as a gzip-compressed tar (POSIX ustar), in the order of their names.
 *
 * @param root folder that they are in.
 * @throws the system's error; a file that is there already is not written over.
 */
export async function writeBundle(
  file: string,
  root: string,
  files: readonly BundleFile[],
  mtime: Date,
  signal: AbortSignal,
): Promise<void> {
  const handle = await open(file, 'wx', MODE);
  const tar = pack();
  const written = pipeline(tar, createGzip(), handle.createWriteStream(), { signal });
  for (const { name, text } of files.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    tar.entry({ name: `${root}/${name}`, mode: 0o644, uid: 0, gid: 0, mtime }, text);
  }
  tar.finalize();
  await written;
}
