import { generateKeyPairSync } from 'node:crypto';
import { isKeyPublished, SIGNING_KEY, signingKeyName } from '../../api/image-signing.ts';
import { ConfigMaps, Secrets } from '../../api/kubernetes.ts';
import { labels, SIGNING_KEY_SECRET, SIGNING_KEYS_CONFIG_MAP } from '../../api/names.ts';
import { type ApiClient, isAlreadyExists } from '../../cluster/api-client.ts';
import { parseSigningKey, type SigningKey, SigningKeyError } from '../../image/signature/signing-key.ts';
import { BuildFailure } from '../build-failure.ts';

/**
 * The Secret with the key that signs images. The operator creates one of the cluster's own unless the admin names
 * another Secret or has created this one, and deletes only what it created; the builder signs with it.
 */
export class SigningKeySecret {
  readonly #client: ApiClient;
  readonly #namespace: string;
  readonly #name: string;
  #last:
    | { readonly pem: string; readonly password: string | undefined; readonly key: SigningKey }
    | undefined;

  /** @param name of the Secret; one other than the default is the admin's. */
  constructor(client: ApiClient, { namespace, name }: { readonly namespace: string; readonly name: string }) {
    this.#client = client;
    this.#namespace = namespace;
    this.#name = name;
  }

  /**
   * Reads the Secret each time, so that a rotated key is used at once. An unchanged key is not decrypted again, which
   * is expensive on purpose.
   *
   * @returns undefined if there is no such Secret.
   * @throws SigningKeyError if it has no usable key, without any of its content; ApiError.
   */
  async find(signal: AbortSignal): Promise<SigningKey | undefined> {
    const secret = await this.#client.find(Secrets, this.#name, { namespace: this.#namespace, signal });
    if (secret === undefined) return undefined;
    const text = (key: string) => {
      const data = secret.data?.[key];
      return data === undefined ? undefined : Buffer.from(data, 'base64').toString('utf8');
    };
    const [pem, password] = [text(SIGNING_KEY), text('cosign.password')];
    if (pem === undefined) throw new SigningKeyError(`${this.#where}: has no ${SIGNING_KEY}`);
    if (this.#last?.pem !== pem || this.#last.password !== password) {
      this.#last = { pem, password, key: parseSigningKey(pem, `${this.#where}, ${SIGNING_KEY}`, password) };
    }
    return this.#last.key;
  }

  /**
   * Only a key that nodes know signs: one that is replaced before the operator has seen it would never be published.
   * The operator keeps a published key as long as a build exists that was created before it was replaced. The builder
   * can't publish a key, so its token makes nodes accept none.
   *
   * @throws BuildFailure, temporary, while there is no usable key or the operator has not published it; ApiError.
   */
  async published(signal: AbortSignal): Promise<SigningKey> {
    const key = await this.find(signal).catch((error: unknown) => {
      throw error instanceof SigningKeyError ? unusable(error.message, error) : error;
    });
    if (key === undefined) throw unusable(`${this.#where}: not found`);
    const name = signingKeyName(key.publicKey);
    const at = { namespace: this.#namespace, signal };
    const published = await this.#client.find(ConfigMaps, SIGNING_KEYS_CONFIG_MAP, at);
    if (isKeyPublished(published?.data, name)) return key;
    throw new BuildFailure(
      'SigningKeyUnpublished',
      `Waiting for the operator to publish the key of ${this.#where} as ${name} in ConfigMap ${SIGNING_KEYS_CONFIG_MAP}: nodes refuse what another key signed`,
      { temporary: true },
    );
  }

  /** What the operator publishes. @throws ApiError */
  async read(signal: AbortSignal) {
    try {
      const key = await this.find(signal);
      if (key !== undefined) return { kind: 'usable', publicKey: key.publicKey } as const;
      return this.#name === SIGNING_KEY_SECRET
        ? ({ kind: 'missing' } as const)
        : ({ kind: 'unusable', why: `${this.#where}: not found` } as const);
    } catch (error) {
      if (!(error instanceof SigningKeyError)) throw error;
      return { kind: 'unusable', why: error.message } as const;
    }
  }

  /** Creates a key pair of the cluster's own; a Secret that exists stays as it is. @throws ApiError */
  async create(signal: AbortSignal): Promise<void> {
    const object = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: this.#name, labels: { [labels.madeBySwitch]: 'true' } },
      data: newKeyPair(),
    };
    const at = { namespace: this.#namespace, signal };
    await this.#client.create(Secrets, object, at).catch((error: unknown) => {
      if (!isAlreadyExists(error)) throw error;
    });
  }

  /** Deletes the Secret if `create` created it. @throws ApiError */
  async remove(signal: AbortSignal): Promise<void> {
    const at = { namespace: this.#namespace, signal };
    const present = await this.#client.find(Secrets, this.#name, at);
    if (present?.metadata.labels?.[labels.madeBySwitch] !== 'true') return;
    await this.#client.delete(Secrets, this.#name, at);
  }

  get #where(): string {
    return `Secret ${this.#namespace}/${this.#name}`;
  }
}

/** Temporary: the Secret may be created or corrected a little later. */
function unusable(why: string, cause?: unknown): BuildFailure {
  return new BuildFailure('SecretUnusable', why, { cause, temporary: true });
}

/**
 * @returns a Secret's data with the keys that `cosign generate-key-pair k8s://…` writes; the private key is not
 * encrypted.
 */
function newKeyPair(): Record<string, string> {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const encoded = (pem: string | Buffer) => Buffer.from(pem).toString('base64');
  return {
    [SIGNING_KEY]: encoded(privateKey.export({ type: 'pkcs8', format: 'pem' })),
    'cosign.pub': encoded(publicKey.export({ type: 'spki', format: 'pem' })),
  };
}
