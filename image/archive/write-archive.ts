import { once } from 'node:events';
import { type Pack, pack } from 'tar-stream';
import { asError } from '../../api/error-message.ts';
import { type Digest, hexOf } from '../../api/references.ts';
import { digestOf } from '../digest.ts';

/** A layer as it goes into an archive: compressed or not, engines see for themselves. */
interface LayerSource {
  readonly diffId: Digest;
  /** Of the bytes below. */
  readonly size: number;
  open(): AsyncIterable<Uint8Array>;
}

/**
 * Writes an image as `docker save` would, for an engine to load. It has the identity that its configuration gives it
 * (Docker image spec v1.2, "Combined Image JSON + Filesystem Changeset Format").
 *
 * @param name `repository:tag` that the engine will know it by.
 * @yields the archive as it comes; memory stays the same whatever the layers' size.
 * @throws what opening a layer throws.
 */
export async function* writeImageArchive(image: {
  readonly name: string;
  readonly config: Uint8Array;
  readonly layers: readonly LayerSource[];
}): AsyncGenerator<Uint8Array> {
  const archive = pack();
  const writing = write(archive, image);
  writing.catch((error: unknown) => archive.destroy(asError(error)));
  try {
    for await (const chunk of archive) yield chunk as Uint8Array;
    await writing;
  } finally {
    archive.destroy();
  }
}

async function write(archive: Pack, { name, config, layers }: Parameters<typeof writeImageArchive>[0]) {
  const configName = `${hexOf(digestOf(config))}.json`;
  // A layer that stands twice is one file that is named twice.
  const unique = new Map(layers.map((layer) => [layer.diffId, layer]));
  const Layers = layers.map(({ diffId }) => `${hexOf(diffId)}.tar`);
  archive.entry(
    { name: 'manifest.json' },
    JSON.stringify([{ Config: configName, RepoTags: [name], Layers }]),
  );
  archive.entry({ name: configName }, Buffer.from(config));
  for (const { diffId, size, open } of unique.values()) {
    const entry = archive.entry({ name: `${hexOf(diffId)}.tar`, size });
    // The archive breaks together with its entry, and its reader gets the error; unheard, the entry's would end the
    // process.
    entry.on('error', () => undefined);
    const closed = new AbortController();
    archive.once('close', () => closed.abort(new Error('nobody reads the archive any more')));
    for await (const chunk of open()) {
      if (!entry.write(Buffer.from(chunk))) await once(entry, 'drain', { signal: closed.signal });
    }
    entry.end(undefined);
  }
  archive.finalize();
}
