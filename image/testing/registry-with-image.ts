import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Digest } from '../digest.ts';
import { parseReference, type Reference } from '../reference.ts';
import { createRegistryClient, type RegistryClient } from '../registry/registry-client.ts';
import { parseSigningKey, type SigningKey } from '../signature/signing-key.ts';
import { pushBaseImage } from './base-image.ts';
import { startDockerRegistry } from './docker-registry.ts';

export interface RegistryWithImage {
  readonly client: RegistryClient;
  /** `127.0.0.1:port/os/worker:1` */
  readonly at: Reference & { readonly tag: string };
  readonly digest: Digest;
  /** For a test's own files; gone when the registry is. */
  readonly dir: string;
  stop(): Promise<void>;
}

/** Starts a docker-registry with one image in it. */
export async function startRegistryWithImage(signal: AbortSignal): Promise<RegistryWithImage> {
  const dir = await mkdtemp(path.join(tmpdir(), 'registry-'));
  const registry = await startDockerRegistry({ dir });
  const client = createRegistryClient({ plainHttp: new Set([registry.host]) });
  const name = `${registry.host}/os/worker`;
  return {
    client,
    at: { ...parseReference(name), tag: '1' },
    digest: await pushBaseImage(client, `${name}:1`, signal),
    dir,
    async stop() {
      await registry.stop();
      await rm(dir, { recursive: true });
    },
  };
}

/** @returns a new key to sign with. */
export function newSigningKey(): SigningKey {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return parseSigningKey(String(privateKey.export({ type: 'pkcs8', format: 'pem' })), 'test key');
}
