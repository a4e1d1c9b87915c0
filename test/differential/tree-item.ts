/** Mode and numeric owner, as stat(2) has them. */
export interface Attributes {
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
}

/** One thing of a tree, or what takes something away from the layers below. Paths are absolute within the tree. */
export type TreeItem =
  | ({
      readonly type: 'file';
      readonly path: string;
      readonly text: string;
      /** Whether it has the capability cap_net_raw (security.capability, an extended attribute). */
      readonly capable?: boolean;
    } & Attributes)
  | ({ readonly type: 'directory'; readonly path: string } & Attributes)
  | {
      readonly type: 'symlink';
      readonly path: string;
      readonly target: string;
      readonly uid: number;
      readonly gid: number;
    }
  | { readonly type: 'hardlink'; readonly path: string; readonly target: string }
  /** Of a node's /var alone: no image has one. */
  | { readonly type: 'fifo'; readonly path: string }
  | { readonly type: 'whiteout'; readonly path: string }
  | { readonly type: 'opaque'; readonly path: string };

const ROOT = { uid: 0, gid: 0 };

/** @returns a file of root's. */
export function file(
  path: string,
  text: string,
  more: Partial<Attributes> & { capable?: boolean } = {},
): TreeItem {
  return { type: 'file', path, text, mode: 0o644, ...ROOT, ...more };
}

/** @returns a directory of root's. */
export function directory(path: string, more: Partial<Attributes> = {}): TreeItem {
  return { type: 'directory', path, mode: 0o755, ...ROOT, ...more };
}

/** @returns a symbolic link of root's. */
export function link(path: string, target: string): TreeItem {
  return { type: 'symlink', path, target, ...ROOT };
}

/** @returns another name of a file. */
export function hardLink(path: string, target: string): TreeItem {
  return { type: 'hardlink', path, target };
}

/** @returns the item in a line, for a failure that somebody has to repeat. */
export function formatItem(item: TreeItem): string {
  switch (item.type) {
    case 'file':
      return `file ${item.path} ${formatAttributes(item)} ${JSON.stringify(item.text)}${item.capable === true ? ' cap_net_raw' : ''}`;
    case 'directory':
      return `directory ${item.path} ${formatAttributes(item)}`;
    case 'symlink':
      return `symlink ${item.path} -> ${item.target} ${item.uid}:${item.gid}`;
    case 'hardlink':
      return `hardlink ${item.path} = ${item.target}`;
    case 'fifo':
    case 'whiteout':
    case 'opaque':
      return `${item.type} ${item.path}`;
  }
}

/** @returns mode and owner as text. */
export function formatAttributes({ mode, uid, gid }: Attributes): string {
  return `${mode.toString(8).padStart(4, '0')} ${uid}:${gid}`;
}
