import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';

/** One file of the page. */
export interface Asset {
  readonly body: Buffer;
  readonly type: string;
  /** Its name holds a hash of its content. */
  readonly immutable: boolean;
}

/** The page was not built, or not where it is looked for. */
export class PageNotBuilt extends Error {
  override readonly name = 'PageNotBuilt';
}

/** Where `npm run build:page` puts the page. */
export const PAGE_DIRECTORY = path.join(import.meta.dirname, '../dist');

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/**
 * Reads the page into memory: nothing that somebody asks for is ever looked up on the disk.
 *
 * @returns its files by their path in a URL; `/` is the document.
 * @throws PageNotBuilt
 */
export async function readAssets(directory = PAGE_DIRECTORY): Promise<ReadonlyMap<string, Asset>> {
  let names: readonly string[];
  try {
    names = await readdir(directory, { recursive: true });
  } catch (error) {
    throw new PageNotBuilt(`the page is not built: ${directory} does not exist; run npm run build:page`, {
      cause: error,
    });
  }
  const assets = new Map<string, Asset>();
  for (const name of names.toSorted()) {
    const type = TYPES[path.extname(name)];
    if (type === undefined) continue;
    const url = `/${name.split(path.sep).join('/')}`;
    const asset = {
      body: await readFile(path.join(directory, name)),
      type,
      immutable: url.startsWith('/assets/'),
    };
    assets.set(url === '/index.html' ? '/' : url, asset);
  }
  if (!assets.has('/')) throw new PageNotBuilt(`the page is not built: ${directory} has no index.html`);
  return assets;
}
