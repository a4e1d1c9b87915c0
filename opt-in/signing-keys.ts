import type { Logger } from 'pino';
import { signingKeyName } from '../api/image-signing.ts';
import { type ConfigMap, ConfigMaps } from '../api/kubernetes.ts';
import type { MachineOSBuild } from '../api/machine-os-build.ts';
import { SIGNING_KEYS_CONFIG_MAP } from '../api/names.ts';
import type { NewObject } from '../api/object.ts';
import type { ApiClient } from '../cluster/api-client.ts';
import { isRecent } from '../cluster/is-recent.ts';
import type { Signing } from './switch.ts';
import { unlessExists } from './unless-exists.ts';

/** The Secret with the key that signs images. */
export type SigningKeyState =
  /** It has a usable key; `publicKey` is in PEM. */
  | { readonly kind: 'usable'; readonly publicKey: string }
  | { readonly kind: 'missing' }
  /** Builds fail with the reason until an admin changes it. */
  | { readonly kind: 'unusable'; readonly why: string };

/** The Secret with the key that signs images. This room knows no keys: the operator's main brings the real one. */
interface SigningKeyStore {
  /** @throws {ApiError} */
  read(signal: AbortSignal): Promise<SigningKeyState>;
  /** Creates a key pair of the cluster's own; a Secret that exists stays as it is. @throws {ApiError} */
  create(signal: AbortSignal): Promise<void>;
  /** Deletes the Secret if `create` created it. @throws {ApiError} */
  remove(signal: AbortSignal): Promise<void>;
}

/** What signing is decided from. */
export interface SigningObservation {
  readonly signing: Signing;
  readonly signingKey: SigningKeyState;
  /** The ConfigMap of public keys. */
  readonly publishedKeys: ConfigMap | undefined;
  readonly builds: readonly MachineOSBuild[];
}

export type SigningStep =
  | { readonly kind: 'createSigningKey' }
  | { readonly kind: 'publishSigningKeys'; readonly desired: NewObject<ConfigMap> }
  | { readonly kind: 'removeSigningKeys' };

/** Nodes must know a key before the first image that it signed. */
export function decideSigning({
  signing,
  signingKey,
  publishedKeys: published,
  builds,
}: SigningObservation): SigningStep | undefined {
  if (signing === 'required' && signingKey.kind !== 'usable') {
    return signingKey.kind === 'missing' ? { kind: 'createSigningKey' } : undefined;
  }
  const current = signingKey.kind === 'usable' ? signingKey.publicKey : '';
  const desired = decideSigningKeys({ signing, published, current, builds });
  return desired === undefined ? undefined : { kind: 'publishSigningKeys', desired };
}

/**
 * Decides what the ConfigMap of public keys contains. It is the operator's alone, and what it has is no proof that the
 * operator wrote it: a key is published because it is that of the Secret, or because a build that succeeded says that
 * it was, when it signed the build's image. So a node can verify what it may roll back to, and a key that nothing
 * explains is removed. A build that was running at a rotation is signed again by the builder.
 *
 * @param observed.current the public key in PEM that images are signed with now.
 * @returns the ConfigMap's content; undefined when it needs no change.
 */
export function decideSigningKeys(observed: {
  readonly signing: Signing;
  readonly published: ConfigMap | undefined;
  readonly current: string;
  readonly builds: readonly MachineOSBuild[];
}): NewObject<ConfigMap> | undefined {
  const { signing, published } = observed;
  const data = signing === 'disabled' ? {} : keysInForce(observed);
  if (published !== undefined && sameKeys(published.data ?? {}, data)) return undefined;
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: SIGNING_KEYS_CONFIG_MAP }, data };
}

/** Public keys in PEM by name. */
type PublishedKeys = Readonly<Record<string, string>>;

/** A key's name is a digest of it, so a build that names its key names no other. */
function keysInForce({
  published,
  current,
  builds,
}: Pick<Parameters<typeof decideSigningKeys>[0], 'published' | 'current' | 'builds'>): PublishedKeys {
  const signers = new Set(builds.flatMap(({ status }) => status?.signingKey ?? []));
  const earlier = Object.entries(published?.data ?? {}).filter(
    ([name, pem]) => name === signingKeyName(pem) && signers.has(name),
  );
  return { ...Object.fromEntries(earlier), [signingKeyName(current)]: current };
}

function sameKeys(a: PublishedKeys, b: PublishedKeys): boolean {
  const canonical = (keys: PublishedKeys) => JSON.stringify(Object.entries(keys).sort());
  return canonical(a) === canonical(b);
}

/**
 * How old the reading of the signing key may be: a rotation is noticed this late. The Secret is not watched: its name
 * is the admin's choice.
 */
const SIGNING_KEY_AGE_MS = 60_000;

interface SigningParts {
  readonly client: ApiClient;
  readonly log: Logger;
  readonly secret: SigningKeyStore;
  readonly namespace: string;
  /** ms since the epoch. */
  readonly now: () => number;
}

/** The key that images are signed with, and the ConfigMap of the public keys that nodes accept. */
export class SigningKeys {
  readonly #parts: SigningParts;
  #last: { readonly state: SigningKeyState; readonly readAt: number } | undefined;

  constructor(parts: SigningParts) {
    this.#parts = parts;
  }

  /** What the Secret was read as last. */
  get state(): SigningKeyState {
    return this.#last?.state ?? { kind: 'missing' };
  }

  /** @throws {ApiError} */
  async read(when: 'now' | 'of-late', signal: AbortSignal): Promise<void> {
    const { secret, now } = this.#parts;
    const readAt = this.#last?.readAt;
    if (when === 'of-late' && readAt !== undefined && isRecent(readAt, now(), SIGNING_KEY_AGE_MS)) return;
    this.#last = { state: await secret.read(signal), readAt: now() };
  }

  /** Carries out a step, which can be repeated. @throws {ApiError} */
  async take(step: SigningStep, signal: AbortSignal): Promise<void> {
    const { client, log, secret, namespace } = this.#parts;
    switch (step.kind) {
      case 'createSigningKey':
        log.info('creating the key that signs images');
        return secret.create(signal);
      case 'publishSigningKeys':
        return this.#publish(step.desired, signal);
      case 'removeSigningKeys':
        await secret.remove(signal);
        await client.delete(ConfigMaps, SIGNING_KEYS_CONFIG_MAP, { namespace, signal });
    }
  }

  async #publish(desired: NewObject<ConfigMap>, signal: AbortSignal): Promise<void> {
    const { client, log, namespace } = this.#parts;
    const { data = {}, metadata } = desired;
    log.info({ keys: Object.keys(data) }, 'publishing the keys that images must be signed with');
    const present = await client.find(ConfigMaps, SIGNING_KEYS_CONFIG_MAP, { namespace, signal });
    if (present === undefined) {
      await unlessExists(client.create(ConfigMaps, desired, { namespace, signal }));
      return;
    }
    const replaced = { ...present, metadata: { ...present.metadata, ...metadata }, data };
    await client.replace(ConfigMaps, replaced, { namespace, signal });
  }
}
