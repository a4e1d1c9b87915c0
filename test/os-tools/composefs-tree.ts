import {
  chmodSync,
  chownSync,
  lchownSync,
  linkSync,
  mkdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import type { LayerItem } from '../../image/layer/entry.ts';

/** Writes the tree of an image whose content is in memory. @param layers lowest first. */
export function writeTree(directory: string, layers: readonly (readonly LayerItem[])[]): void {
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  for (const layer of layers) for (const item of layer) writeItem(directory, item);
}

function writeItem(directory: string, item: LayerItem): void {
  const place = path.join(directory, item.path);
  mkdirSync(path.dirname(place), { recursive: true });
  if (item.type !== 'directory') rmSync(place, { recursive: true, force: true });
  switch (item.type) {
    case 'directory':
      mkdirSync(place, { recursive: true });
      chmodSync(place, item.mode);
      chownSync(place, item.uid, item.gid);
      return;
    case 'file':
      if (!(item.content instanceof Uint8Array))
        throw new TypeError(`${item.path}: content in memory expected`);
      writeFileSync(place, item.content);
      chownSync(place, item.uid, item.gid);
      chmodSync(place, item.mode);
      return;
    case 'symlink':
      symlinkSync(item.target, place);
      lchownSync(place, item.uid, item.gid);
      return;
    case 'hardlink':
      linkSync(path.join(directory, item.target), place);
      return;
    case 'whiteout':
      return;
    case 'opaque':
      rmSync(place, { recursive: true, force: true });
      mkdirSync(place);
  }
}
