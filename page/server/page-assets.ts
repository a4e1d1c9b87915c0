import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { getAssetKeys, getRawAsset, isSea } from 'node:sea';
import { by } from '../../api/order.ts';
import { StartupError } from '../../cluster/startup-error.ts';

/** A file of the page. */
export interface Asset {
  readonly body: Buffer;
  readonly type: string;
  /** Whether its name contains a hash of its content. */
  readonly immutable: boolean;
}

/** The page was not built, or was built into another directory. */
class PageNotBuilt extends StartupError {
  override readonly name = 'PageNotBuilt';

  constructor(message: string, options?: ErrorOptions) {
    super('unavailable', message, options);
  }
}

/** The output directory of `npm run build:page`. */
const PAGE_DIRECTORY = path.join(import.meta.dirname, '../dist');

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/**
 * Reads the page into memory, so that requests never access the disk.
 *
 * @param directory of the page; absent: the page that comes with this program, which is in the program itself where it
 *   is one file.
 * @returns its files by their path in a URL; `/` is the document.
 * @throws PageNotBuilt
 */
export async function readAssets(directory?: string): Promise<ReadonlyMap<string, Asset>> {
  if (directory === undefined && isSea()) return assetsOf(embeddedFiles(), 'this program');
  const place = directory ?? PAGE_DIRECTORY;
  return assetsOf(await filesOf(place), place);
}

function embeddedFiles(): Map<string, Buffer> {
  return new Map(getAssetKeys().map((name) => [name, Buffer.from(getRawAsset(name))]));
}

async function filesOf(directory: string): Promise<Map<string, Buffer>> {
  let names: readonly string[];
  try {
    names = await readdir(directory, { recursive: true });
  } catch (error) {
    throw new PageNotBuilt(`the page is not built: ${directory} does not exist; run make page`, {
      cause: error,
    });
  }
  const files = new Map<string, Buffer>();
  for (const name of names) {
    if (path.extname(name) in TYPES)
      files.set(name.split(path.sep).join('/'), await readFile(path.join(directory, name)));
  }
  return files;
}

function assetsOf(files: ReadonlyMap<string, Buffer>, place: string): Map<string, Asset> {
  const assets = new Map<string, Asset>();
  for (const [name, body] of [...files].sort(by(([key]) => key))) {
    const type = TYPES[path.extname(name)];
    if (type === undefined) continue;
    const url = `/${name}`;
    assets.set(url === '/index.html' ? '/' : url, { body, type, immutable: url.startsWith('/assets/') });
  }
  if (!assets.has('/')) throw new PageNotBuilt(`the page is not built: ${place} has no index.html`);
  return assets;
}
