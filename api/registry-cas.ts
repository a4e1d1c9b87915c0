import { createHash } from 'node:crypto';
import type { Digest } from './references.ts';

/**
 * The digest by which the operator names the registry CAs a node should have and the daemon checks what it was given.
 *
 * @param data the ConfigMap's data: a PEM bundle for each registry host.
 * @returns the same digest for the same data, in whatever order the keys come.
 */
export function registryCAsDigest(data: Readonly<Record<string, string>>): Digest {
  const sorted = Object.entries(data).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return `sha256:${createHash('sha256').update(JSON.stringify(sorted)).digest('hex')}` as Digest;
}

/**
 * The registry that a key of the ConfigMap stands for: a ConfigMap's key can't hold a colon, so OpenShift writes two
 * dots before a port.
 *
 * @returns `host` or `host:port`; undefined for a key that is neither and could name another directory.
 */
export function registryOfKey(key: string): string | undefined {
  const registry = key.replace(/\.\.(\d{1,5})$/, ':$1');
  return /^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?(:\d{1,5})?$/.test(registry) && !registry.includes('..')
    ? registry
    : undefined;
}
