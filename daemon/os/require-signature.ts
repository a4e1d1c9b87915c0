import { z } from 'zod';
import { SIGNING_DISABLED, signingKeysVersion } from '../../api/image-signing.ts';
import { ConfigMaps } from '../../api/kubernetes.ts';
import type { MachineConfigNodeSpec } from '../../api/machine-config-node.ts';
import { SIGNING_KEYS_CONFIG_MAP } from '../../api/names.ts';
import { type DigestedPullspec, DigestedPullspecSchema } from '../../api/references.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { SigningKeyError } from '../../image/signature/signing-key.ts';
import { PrepareRefused } from '../records/current.ts';
import { stateRecord } from '../records/durable-json.ts';
import type { VerifiedImage } from './image-policy/policy-entries.ts';
import type { ImageSource } from './ostree/image-source.ts';

/** What verifying a signature needs to know. */
interface SignatureCheck {
  readonly client: ApiClient;
  /** Of the ConfigMap with the public keys. */
  readonly namespace: string;
  readonly signatures: Pick<ImageSource, 'isSignedBy'>;
  /** The running root. */
  readonly root: string;
  readonly spec: Pick<MachineConfigNodeSpec, 'imageSigningKeys'>;
  readonly signal: AbortSignal;
}

/** Images whose signatures are remembered: the booted one, the staged one, the one to roll back to, and one more. */
const REMEMBERED = 4;

const VerifiedImages = z.object({
  version: z.literal(1),
  /** Latest last. */
  images: z.array(z.object({ image: DigestedPullspecSchema, key: z.string() })),
});

const record = stateRecord('verified-images.json', VerifiedImages);

/**
 * @param root the running root. @returns images whose signatures were verified, by which key, latest last. @throws
 * RecordError
 */
export async function readVerifiedImages(root: string): Promise<z.infer<typeof VerifiedImages>['images']> {
  return (await record.read(root))?.images ?? [];
}

/**
 * Ensures that the cluster signed an image, before any of it is staged, whatever tool stages it
 * (docs/decisions/0003-signing.md).
 *
 * A verified image is remembered by digest, so that a rollback to it needs no registry; it counts only as long as its
 * key is one of those that the operator names.
 *
 * @returns the remembered images whose keys are still named, this one last; none while signing is disabled.
 * @throws PrepareRefused when it is not signed, or when it is not known with which keys it must be; ApiError,
 *   RegistryError.
 */
export async function requireSignature(
  check: SignatureCheck,
  image: DigestedPullspec,
): Promise<readonly VerifiedImage[]> {
  const { root, spec } = check;
  if (spec.imageSigningKeys === SIGNING_DISABLED) return [];
  const keys = await keysNamedBy(check, image);
  const verified = await readVerifiedImages(root);
  const known = verified.find((each) => each.image === image && keys.has(each.key));
  const key = known?.key ?? (await findSigner(check.signatures, image, toTry(keys), check.signal));
  if (key === undefined) {
    throw new PrepareRefused(
      `${image}: found no signature by a key of ConfigMap ${SIGNING_KEYS_CONFIG_MAP}; expected one by ${[...keys.keys()].join(' or ')}`,
    );
  }
  const others = verified.filter((each) => each.image !== image);
  const images = [...others, { image, key }].slice(-REMEMBERED);
  if (known === undefined) await record.write(root, { version: 1, images });
  return images.flatMap((each) => {
    const publicKey = keys.get(each.key);
    return publicKey === undefined ? [] : [{ image: each.image as DigestedPullspec, publicKey }];
  });
}

function toTry(keys: ReadonlyMap<string, string>): readonly KeyToTry[] {
  return [...keys].map(([name, publicKey]) => ({
    name,
    description: `ConfigMap ${SIGNING_KEYS_CONFIG_MAP}: ${name}`,
    read: () => publicKey,
  }));
}

/** @returns the public keys in PEM by name; at least one. */
async function keysNamedBy(
  { client, namespace, spec, signal }: SignatureCheck,
  image: DigestedPullspec,
): Promise<ReadonlyMap<string, string>> {
  const version = spec.imageSigningKeys;
  if (version === undefined) {
    throw new PrepareRefused(
      `${image}: the operator has not published yet with which keys images must be signed (spec.imageSigningKeys)`,
    );
  }
  const configMap = await client.find(ConfigMaps, SIGNING_KEYS_CONFIG_MAP, { namespace, signal });
  const data = configMap?.data ?? {};
  const present = signingKeysVersion(data);
  if (present !== version) {
    throw new PrepareRefused(
      `ConfigMap ${namespace}/${SIGNING_KEYS_CONFIG_MAP}: found ${present}, the operator named ${version}; it may have changed since`,
    );
  }
  return new Map(Object.entries(data));
}

/** A public key that may have signed an image. */
interface KeyToTry {
  readonly name: string;
  /** What the message calls it, if it can't be used. */
  readonly description: string;
  /** @returns the key in PEM. */
  readonly read: () => string | Promise<string>;
}

/**
 * Looks for the key that signed an image.
 *
 * @param source an image of a source without signatures has no signer.
 * @param keys in the order in which they are tried; those after the signer are not read.
 * @returns the name of the first key that signed exactly this image; undefined if none of them did.
 * @throws PrepareRefused for a key that can't be used; RegistryError, ContentError, and what `read` throws.
 */
export async function findSigner(
  source: Pick<ImageSource, 'isSignedBy'>,
  image: DigestedPullspec,
  keys: Iterable<KeyToTry>,
  signal: AbortSignal,
): Promise<string | undefined> {
  for (const { name, description, read } of keys) {
    const publicKey = await read();
    try {
      if ((await source.isSignedBy?.(image, publicKey, signal)) === true) return name;
    } catch (cause) {
      if (!(cause instanceof SigningKeyError)) throw cause;
      throw new PrepareRefused(`${description}: ${cause.message}`, { cause });
    }
  }
  return undefined;
}
