import { z } from 'zod';
import { DigestSchema } from '../api/references.ts';
import type { Descriptor as BlobDescriptor } from './digest.ts';
import { OCI_MANIFEST } from './registry/manifest-type.ts';
import { ContentError } from './registry/registry-error.ts';

const Descriptor = z.looseObject({ mediaType: z.string(), digest: DigestSchema, size: z.int().min(0) });

const Manifest = z.looseObject({
  schemaVersion: z.literal(2),
  mediaType: z.string().exactOptional(),
  config: Descriptor,
  layers: z.array(Descriptor).max(1000),
  annotations: z.record(z.string(), z.string()).nullable().exactOptional(),
});
/** An image manifest (OCI image-spec, manifest.md; Docker schema 2 has the same fields). */
export type Manifest = z.infer<typeof Manifest>;

const Index = z.looseObject({
  schemaVersion: z.literal(2),
  manifests: z
    .array(
      Descriptor.extend({
        platform: z
          .looseObject({ os: z.string(), architecture: z.string(), variant: z.string().exactOptional() })
          .nullable()
          .exactOptional(),
      }),
    )
    .max(1000),
});
/** An image index or Docker manifest list (OCI image-spec, image-index.md). */
export type Index = z.infer<typeof Index>;

const ImageConfig = z.looseObject({
  architecture: z.string(),
  os: z.string(),
  variant: z.string().exactOptional(),
  config: z
    .looseObject({ Labels: z.record(z.string(), z.string()).nullable().exactOptional() })
    .nullable()
    .exactOptional(),
  rootfs: z.looseObject({ type: z.literal('layers'), diff_ids: z.array(DigestSchema) }),
  // Programs in Go write null for a list without items.
  history: z
    .array(z.looseObject({ empty_layer: z.boolean().exactOptional() }))
    .nullable()
    .exactOptional(),
});
/** An image's configuration (OCI image-spec, config.md). Fields that are not named here are kept as they are. */
export type ImageConfiguration = z.infer<typeof ImageConfig>;

/**
 * @param fields of an image of OCI, in the order in which they stand.
 * @returns its manifest as bytes, the same for the same fields.
 */
export function formatManifest(fields: {
  readonly artifactType?: string;
  readonly config: BlobDescriptor;
  readonly layers: readonly BlobDescriptor[];
  readonly subject?: BlobDescriptor;
  readonly annotations?: Readonly<Record<string, string | undefined>>;
}): Buffer {
  return Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: OCI_MANIFEST, ...fields }));
}

type ParsedManifest =
  | { readonly kind: 'image'; readonly manifest: Manifest }
  | { readonly kind: 'index'; readonly index: Index };

/**
 * @param bytes of the manifest.
 * @param where for the message of an error.
 * @throws ContentError for anything but an OCI or Docker schema 2 manifest or index.
 */
export function parseManifest(bytes: Uint8Array, where: string): ParsedManifest {
  const json = parseJson(bytes, where);
  const isIndex = typeof json === 'object' && json !== null && 'manifests' in json;
  return isIndex
    ? { kind: 'index', index: check(Index, json, where) }
    : { kind: 'image', manifest: check(Manifest, json, where) };
}

/** @throws ContentError for anything but an image's configuration. */
export function parseImageConfig(bytes: Uint8Array, where: string): ImageConfiguration {
  return check(ImageConfig, parseJson(bytes, where), where);
}

function parseJson(bytes: Uint8Array, where: string): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString('utf8'));
  } catch (cause) {
    throw new ContentError(`${where}: is not valid JSON`, { cause });
  }
}

function check<T>(schema: z.ZodType<T>, json: unknown, where: string): T {
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new ContentError(`${where}: ${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'is not valid'}`);
}

/** Go's words, as images say them (OCI image-spec, image-index.md), for those of Node.js that are others. */
const GO_WORDS: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386' };

/**
 * @param nodeWord as `process.arch` says it.
 * @returns the same architecture in Go's words.
 */
export function goArchitecture(nodeWord: string): string {
  return GO_WORDS[nodeWord] ?? nodeWord;
}

type Entry = Index['manifests'][number];

/**
 * Chooses the Linux image of an index for an architecture. Nodes don't report their variant, so the one that runs on
 * each of them counts: none named, for arm64 also v8, which is all it has, otherwise the first.
 *
 * @returns undefined where there is none.
 */
export function imageFor({ manifests }: Pick<Index, 'manifests'>, architecture: string): Entry | undefined {
  const there = manifests.filter(
    ({ platform }) => platform?.os === 'linux' && platform.architecture === architecture,
  );
  const isPlain = ({ platform }: Entry) =>
    platform?.variant === undefined || (architecture === 'arm64' && platform.variant === 'v8');
  return there.find(isPlain) ?? there[0];
}

/** @returns the platforms of an index, for messages. */
export function platformsOf({ manifests }: Pick<Index, 'manifests'>): readonly string[] {
  return manifests.map(({ platform }) =>
    !platform
      ? 'unknown'
      : [platform.os, platform.architecture, platform.variant].filter((part) => part !== undefined).join('/'),
  );
}
