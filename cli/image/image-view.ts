import { readFile } from 'node:fs/promises';
import { formatActions } from '../../api/disruption-action.ts';
import { imageLabels } from '../../api/names.ts';
import { parseTransitionLabel } from '../../disruption/transitions.ts';
import type { ImageDescription } from '../../image/append.ts';
import type { LayerItem } from '../../image/layer/entry.ts';
import type { Reference } from '../../image/reference.ts';
import { listReferrers } from '../../image/referrers.ts';
import type { RegistryClient } from '../../image/registry/registry-client.ts';
import { countSignatures, isImageSignedBy } from '../../image/signature/sign-image.ts';
import { parsePublicKey, SigningKeyError } from '../../image/signature/signing-key.ts';
import { CommandError, exitCodes } from '../command-line/exit-codes.ts';

/** An entry of the rendered config's layer. */
export interface FileView {
  readonly path: string;
  readonly type: Exclude<LayerItem['type'], 'whiteout' | 'opaque'>;
  /** Octal. */
  readonly mode?: string;
  readonly owner?: string;
  readonly bytes?: number;
  readonly target?: string;
}

/** What an image was built from and what it requires of nodes, for both text and JSON. */
export interface ImageView {
  readonly digest: string;
  readonly platform: string;
  /** The platforms of the index, if the name refers to one. */
  readonly platforms?: readonly string[] | undefined;
  readonly pool: string | null;
  readonly renderedConfig: string | null;
  readonly baseImage: string | null;
  /** The stock image, when an engine built the base image from it. */
  readonly stockImage: string | null;
  readonly policyDigest: string | null;
  readonly created: string | null;
  readonly shaleVersion: string | null;
  readonly source: { readonly url: string | undefined; readonly revision: string | undefined };
  /** The compressed size of all layers. */
  readonly bytes: number;
  readonly layers: readonly {
    readonly digest: string;
    readonly bytes: number;
    readonly from: 'base' | 'renderedConfig';
  }[];
  readonly transitions: readonly TransitionView[];
  /** Why the transition label can't be used; every node reboots then. */
  readonly transitionsUnknown?: string;
}

interface TransitionView {
  readonly from: string;
  readonly base: string;
  readonly actions: string;
  readonly because: readonly string[];
}

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

type Transition = Extract<
  ReturnType<typeof parseTransitionLabel>,
  { ok: true }
>['label']['transitions'][number];

function transitionView({ config: from, base, actions, causes }: Transition): TransitionView {
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

/** The artifacts of an image that prove its origin. */
export interface ImageTrust {
  readonly referrers: readonly {
    readonly artifactType: string;
    readonly digest: string;
    readonly bytes: number;
  }[];
  readonly signatures: number;
  /** Whether the key of the flag made one of the signatures; absent without the flag. */
  readonly signedByKey?: boolean;
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
  try {
    const pem = await readFile(file, 'utf8');
    parsePublicKey(pem, file);
    return pem;
  } catch (cause) {
    const why = cause instanceof SigningKeyError ? cause.message : `${file}: can't be read`;
    throw new CommandError(why, exitCodes.usage, { cause });
  }
}
