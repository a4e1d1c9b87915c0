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
