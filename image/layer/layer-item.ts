/**
 * What a layer that is read does to the layers below it (OCI image-spec, layer.md): entries as they are written, with the
 * content of files as a stream, and what takes away. Paths may begin with a slash or not.
 */
export type LayerItem =
  | {
      readonly type: 'file';
      readonly path: string;
      readonly mode: number;
      readonly uid: number;
      readonly gid: number;
      /** A stream must be read to its end, or left, before the next item is asked for. */
      readonly content: Uint8Array | AsyncIterable<Uint8Array>;
    }
  | {
      readonly type: 'directory';
      readonly path: string;
      readonly mode: number;
      readonly uid: number;
      readonly gid: number;
    }
  | {
      readonly type: 'symlink';
      readonly path: string;
      readonly target: string;
      readonly uid: number;
      readonly gid: number;
    }
  | { readonly type: 'hardlink'; readonly path: string; readonly target: string }
  /** The path of a lower layer is not there. */
  | { readonly type: 'whiteout'; readonly path: string }
  /** What lower layers have below the path is not there. */
  | { readonly type: 'opaque'; readonly path: string };
