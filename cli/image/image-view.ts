import { z } from 'zod';
import { formatActions } from '../../api/disruption-action.ts';
import { imageLabels } from '../../api/names.ts';
import { parseTransitionLabel, type Transition } from '../../disruption/transitions.ts';
import type { ImageDescription } from '../../image/append.ts';
import type { LayerItem } from '../../image/layer/entry.ts';
import type { Reference } from '../../image/reference.ts';
import { listReferrers } from '../../image/referrers.ts';
import type { RegistryClient } from '../../image/registry/registry-client.ts';
import { countSignatures, isImageSignedBy } from '../../image/signature/sign-image.ts';
import { parsePublicKey, SigningKeyError } from '../../image/signature/signing-key.ts';
import { asGiven } from '../command-line/exit-codes.ts';
import { readText } from '../command-line/registry-flags.ts';

const FileView = z.strictObject({
  path: z.string(),
  type: z.enum(['file', 'directory', 'symlink', 'hardlink']),
  /** Octal. */
  mode: z.string().optional(),
  owner: z.string().optional(),
  bytes: z.number().optional(),
  target: z.string().optional(),
});
/** An entry of the rendered config's layer. */
export type FileView = z.infer<typeof FileView>;

const ImageView = z.strictObject({
  digest: z.string(),
  platform: z.string(),
  /** The platforms of the index, if the name refers to one. */
  platforms: z.array(z.string()).readonly().optional(),
  pool: z.string().nullable(),
  renderedConfig: z.string().nullable(),
  baseImage: z.string().nullable(),
  /** The stock image, when an engine built the base image from it. */
  stockImage: z.string().nullable(),
  policyDigest: z.string().nullable(),
  created: z.string().nullable(),
  shaleVersion: z.string().nullable(),
  source: z.strictObject({ url: z.string().optional(), revision: z.string().optional() }),
  /** The compressed size of all layers. */
  bytes: z.number(),
  layers: z.array(
    z.strictObject({ digest: z.string(), bytes: z.number(), from: z.enum(['base', 'renderedConfig']) }),
  ),
  transitions: z.array(
    z.strictObject({
      from: z.string(),
      base: z.string(),
      actions: z.string(),
      because: z.array(z.string()),
    }),
  ),
  /** Why the transition label can't be used; every node reboots then. */
  transitionsUnknown: z.string().optional(),
});
/** What an image was built from and what it requires of nodes, for both text and JSON. */
export type ImageView = z.infer<typeof ImageView>;

const ImageTrust = z.strictObject({
  referrers: z.array(z.strictObject({ artifactType: z.string(), digest: z.string(), bytes: z.number() })),
  signatures: z.number(),
  /** Whether the key of the flag made one of the signatures; absent without the flag. */
  signedByKey: z.boolean().optional(),
});
/** The artifacts of an image that prove its origin. */
export type ImageTrust = z.infer<typeof ImageTrust>;

/** As `-o json` prints it. */
export const ImageOutput = ImageView.extend({
  ...ImageTrust.shape,
  files: z.array(FileView).optional(),
});

/** @returns the view of an image from its manifest and config. */
export function imageView({ digest, manifest, config, platforms }: ImageDescription): ImageView {
  const labels = config.config?.Labels ?? {};
  const label = parseTransitionLabel(labels[imageLabels.disruption]);
  const renderedConfig = labels[imageLabels.renderedConfig] ?? null;
  const url = labels['org.opencontainers.image.source'];
  const revision = labels['org.opencontainers.image.revision'];
  const own = renderedConfig === null ? -1 : manifest.layers.length - 1;
  return {
    digest,
    platform: [config.os, config.architecture, config.variant].filter((part) => part !== undefined).join('/'),
    platforms,
    pool: labels[imageLabels.pool] ?? null,
    renderedConfig,
    baseImage: labels[imageLabels.baseImage] ?? null,
    stockImage: labels[imageLabels.stockImage] ?? null,
    policyDigest: labels[imageLabels.policyDigest] ?? null,
    created: labels['org.opencontainers.image.created'] ?? null,
    shaleVersion: labels[imageLabels.version] ?? null,
    source: { url, revision },
    bytes: manifest.layers.reduce((sum, { size }) => sum + size, 0),
    // The layer of the rendered config is always the last one.
    layers: manifest.layers.map((layer, index) => ({
      digest: layer.digest,
      bytes: layer.size,
      from: index === own ? 'renderedConfig' : 'base',
    })),
    transitions: label.ok ? label.label.transitions.map(transitionView) : [],
    ...(label.ok ? {} : { transitionsUnknown: label.why }),
  };
}

function transitionView({
  config: from,
  base,
  actions,
  causes,
}: Transition): ImageView['transitions'][number] {
  const because = causes.map(({ subject, rule }) => `${subject}: ${rule}`);
  return { from, base, actions: formatActions(actions), because };
}

/**
 * @param item of a layer.
 * @param bytes of a file's content.
 * @returns undefined for a whiteout, which Shale's layers don't contain.
 */
export function fileView(item: LayerItem, bytes: number): FileView | undefined {
  if (item.type === 'whiteout' || item.type === 'opaque') return undefined;
  const path = `/${item.path}`;
  if (item.type === 'hardlink') return { path, type: item.type, target: `/${item.target}` };
  const owner = `${item.uid}:${item.gid}`;
  if (item.type === 'symlink') return { path, type: item.type, owner, target: item.target };
  const mode = item.mode.toString(8).padStart(4, '0');
  return { path, type: item.type, mode, owner, ...(item.type === 'file' ? { bytes } : {}) };
}

/**
 * Reads the artifacts that refer to an image, and verifies its signature with a key.
 *
 * @param keyFile with a public key in PEM.
 * @throws CommandError for a key that can't be used; RegistryError, ContentError.
 */
export async function readTrust(
  client: RegistryClient,
  at: Reference,
  given: { readonly digest: ImageDescription['digest']; readonly keyFile: string | undefined },
  signal: AbortSignal,
): Promise<ImageTrust> {
  const { digest, keyFile } = given;
  const publicKey = keyFile === undefined ? undefined : await readPublicKey(keyFile);
  const referrers = await listReferrers(client, at, digest, signal);
  const signatures = await countSignatures(client, at, digest, signal);
  return {
    referrers: referrers.map(({ artifactType, digest: of, size }) => ({
      artifactType,
      digest: of,
      bytes: size,
    })),
    signatures,
    ...(publicKey === undefined
      ? {}
      : { signedByKey: await isImageSignedBy(client, at, { digest, publicKey }, signal) }),
  };
}

async function readPublicKey(file: string): Promise<string> {
  const pem = await readText(file);
  asGiven(
    () => parsePublicKey(pem, file),
    (error) => (error instanceof SigningKeyError ? error.message : `${file}: can't be read`),
  );
  return pem;
}
