/** Extended attributes by name (`security.capability`, `user.…`): bytes, as getxattr(2) gives them. */
export type Xattrs = Readonly<Record<string, Uint8Array>>;

/** One thing that a layer puts into an image (OCI image-spec, layer.md). Paths are absolute within the image. */
export type LayerEntry =
  | {
      readonly type: 'file';
      readonly path: string;
      readonly mode: number;
      readonly uid: number;
      readonly gid: number;
      readonly content: Uint8Array;
      readonly xattrs?: Xattrs;
    }
  | {
      readonly type: 'directory';
      readonly path: string;
      readonly mode: number;
      readonly uid: number;
      readonly gid: number;
      readonly xattrs?: Xattrs;
    }
  | {
      readonly type: 'symlink';
      readonly path: string;
      readonly target: string;
      readonly uid: number;
      readonly gid: number;
    }
  /** `target` is the path of an entry of the same layer. */
  | { readonly type: 'hardlink'; readonly path: string; readonly target: string };

type FileEntry = Extract<LayerEntry, { readonly type: 'file' }>;

/** A file that is read: a stream must be read to its end, or left, before the next item is asked for. */
type FileItem = Omit<FileEntry, 'content'> & { readonly content: Uint8Array | AsyncIterable<Uint8Array> };

/**
 * What a layer that is read does to the layers below it (OCI image-spec, layer.md): entries as they are written, with
 * the content of files as a stream, and what takes away. Paths may begin with a slash or not.
 */
export type LayerItem =
  | Exclude<LayerEntry, FileEntry>
  | FileItem
  /** The path of a lower layer is not there. */
  | { readonly type: 'whiteout'; readonly path: string }
  /** What lower layers have below the path is not there. */
  | { readonly type: 'opaque'; readonly path: string };
