import type { LayerEntry } from './entry.ts';

type FileEntry = Extract<LayerEntry, { readonly type: 'file' }>;

/** A file that is read: a stream must be read to its end, or left, before the next item is asked for. */
type FileItem = Omit<FileEntry, 'content'> & { readonly content: Uint8Array | AsyncIterable<Uint8Array> };

/**
 * What a layer that is read does to the layers below it (OCI image-spec, layer.md): entries as they are written, with the
 * content of files as a stream, and what takes away. Paths may begin with a slash or not.
 */
export type LayerItem =
  | Exclude<LayerEntry, FileEntry>
  | FileItem
  /** The path of a lower layer is not there. */
  | { readonly type: 'whiteout'; readonly path: string }
  /** What lower layers have below the path is not there. */
  | { readonly type: 'opaque'; readonly path: string };
