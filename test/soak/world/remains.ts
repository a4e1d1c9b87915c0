import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';

/** Larger files hold no text of a campaign. */
const LARGEST_BYTES = 4 * 2 ** 20;

/** @returns lines of the logs of a directory that no logger wrote: Shale logs JSON. */
export async function readRawLines(
  logs: string,
): Promise<readonly { readonly pod: string; readonly line: string }[]> {
  const names = (await readdir(logs)).sort();
  const found = await Promise.all(
    names.map(async (name) => {
      const text = await readFile(path.join(logs, name), 'utf8');
      const raw = text.split('\n').filter((line) => line !== '' && !line.startsWith('{'));
      return raw.map((line) => ({ pod: name.replace(/\.log$/, ''), line }));
    }),
  );
  return found.flat();
}

/** @returns the files below directories that hold one of the secrets, also in base64 or compressed. */
export async function findSecrets(
  directories: readonly string[],
  secrets: readonly string[],
): Promise<readonly string[]> {
  const forms = secrets.flatMap((secret) => [secret, Buffer.from(secret).toString('base64')]);
  const found: string[] = [];
  for (const directory of directories) {
    for (const name of await readdir(directory, { recursive: true })) {
      const file = path.join(directory, name);
      const content = await contentOf(file);
      if (content !== undefined && forms.some((form) => content.includes(form))) found.push(file);
    }
  }
  return found;
}

/**
 * @returns undefined for what is no file, is too large, or was deleted just now: an image is pruned while this reads.
 */
async function contentOf(file: string): Promise<Buffer | undefined> {
  try {
    const stats = await stat(file);
    return stats.isFile() && stats.size <= LARGEST_BYTES ? unpacked(await readFile(file)) : undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return undefined;
  }
}

function unpacked(content: Buffer): Buffer {
  const isGzip = content[0] === 0x1f && content[1] === 0x8b;
  if (!isGzip) return content;
  try {
    return gunzipSync(content);
  } catch {
    // Half of an upload.
    return content;
  }
}
