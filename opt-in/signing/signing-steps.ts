import type { Logger } from 'pino';
import { type ConfigMap, ConfigMaps } from '../../api/kubernetes.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import { SIGNING_KEYS_CONFIG_MAP } from '../../api/names.ts';
import type { NewObject } from '../../api/object.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { isRecent } from '../../cluster/is-recent.ts';
import { unlessExists } from '../unless-exists.ts';
import { decideSigningKeys, type Signing } from './signing-keys.ts';

/** The Secret with the key that signs images. */
export type SigningKeyState =
  /** It has a usable key; `publicKey` is in PEM. */
  | { readonly kind: 'usable'; readonly publicKey: string }
  | { readonly kind: 'missing' }
  /** Builds fail with the reason until an admin changes it. */
  | { readonly kind: 'unusable'; readonly why: string };

/** The Secret with the key that signs images. This room knows no keys: the operator's main brings the real one. */
export interface SigningKeyStore {
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

interface SigningParts {
  readonly client: ApiClient;
  readonly log: Logger;
  readonly signingKey: SigningKeyStore;
  readonly namespace: string;
}

/** Carries out a step, which can be repeated. @throws {ApiError} */
export async function takeSigningStep(
  parts: SigningParts,
  step: SigningStep,
  signal: AbortSignal,
): Promise<void> {
  const { client, log, signingKey, namespace } = parts;
  switch (step.kind) {
    case 'createSigningKey':
      log.info('creating the key that signs images');
      return signingKey.create(signal);
    case 'publishSigningKeys':
      return publishKeys(parts, step.desired, signal);
    case 'removeSigningKeys':
      await signingKey.remove(signal);
      await client.delete(ConfigMaps, SIGNING_KEYS_CONFIG_MAP, { namespace, signal });
  }
}

async function publishKeys(
  { client, log, namespace }: SigningParts,
  desired: NewObject<ConfigMap>,
  signal: AbortSignal,
): Promise<void> {
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

/**
 * How old the reading of the signing key may be: a rotation is noticed this late. The Secret is not watched: its name
 * is the admin's choice.
 */
const SIGNING_KEY_AGE_MS = 60_000;

/** What the Secret with the signing key was read as last. */
export class SigningKeyReader {
  readonly #parts: { readonly signingKey: Pick<SigningKeyStore, 'read'>; readonly now: () => number };
  #last: { readonly state: SigningKeyState; readonly readAt: number } | undefined;

  /** @param parts.now ms since the epoch. */
  constructor(parts: { readonly signingKey: Pick<SigningKeyStore, 'read'>; readonly now: () => number }) {
    this.#parts = parts;
  }

  get state(): SigningKeyState {
    return this.#last?.state ?? { kind: 'missing' };
  }

  /** @throws {ApiError} */
  async read(when: 'now' | 'of-late', signal: AbortSignal): Promise<void> {
    const { signingKey, now } = this.#parts;
    const readAt = this.#last?.readAt;
    if (when === 'of-late' && readAt !== undefined && isRecent(readAt, now(), SIGNING_KEY_AGE_MS)) return;
    this.#last = { state: await signingKey.read(signal), readAt: now() };
  }
}
