import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createSecureContext } from 'node:tls';
import type { Logger } from 'pino';
import { errorMessage } from '../api/error-message.ts';

/** PEM. */
export interface Certificate {
  readonly cert: Buffer;
  readonly key: Buffer;
}

/** Certificates are renewed days before they expire, and the kubelet updates a mounted Secret within two minutes. */
const CHECK_MS = 60_000;

export interface ServingCertificateFiles {
  /** tls.crt and tls.key, as a Secret of type kubernetes.io/tls has them. */
  readonly directory: string;
  /** What is served with it, for the log: `the live page`. */
  readonly of: string;
  /** ms between two checks; absent: {@link CHECK_MS}. */
  readonly checkMs?: number | undefined;
  readonly log: Logger;
}

/** @returns the certificate as soon as it can be used: its Secret may come later. @throws the signal's reason. */
export async function awaitCertificate(
  files: ServingCertificateFiles,
  signal: AbortSignal,
): Promise<Certificate> {
  const logged = new Set<string>();
  for (;;) {
    try {
      return await read(files.directory);
    } catch (error) {
      const why = errorMessage(error);
      if (!logged.has(why)) files.log.warn({ err: error }, `waiting for the certificate of ${files.of}`);
      logged.add(why);
    }
    await delay(files.checkMs ?? CHECK_MS, undefined, { signal });
  }
}

/** Reports each certificate that replaces the one in use, until the signal. */
export async function followCertificate(
  { files, inUse }: { readonly files: ServingCertificateFiles; readonly inUse: Certificate },
  onChange: (certificate: Certificate) => void,
  signal: AbortSignal,
): Promise<void> {
  let last = inUse;
  while (!signal.aborted) {
    await delay(files.checkMs ?? CHECK_MS, undefined, { signal }).catch(() => undefined);
    try {
      const next = await read(files.directory);
      if (next.cert.equals(last.cert) && next.key.equals(last.key)) continue;
      onChange(next);
      last = next;
      files.log.info(`${files.of} uses a new certificate`);
    } catch (error) {
      // Key and certificate are two files: while both are replaced, they may not match.
      files.log.warn({ err: error }, `${files.of} keeps its certificate because the new one cannot be used`);
    }
  }
}

/** @throws the system's error when a file is missing; OpenSSL's when they can't be used together. */
async function read(directory: string): Promise<Certificate> {
  const [cert, key] = await Promise.all([
    readFile(path.join(directory, 'tls.crt')),
    readFile(path.join(directory, 'tls.key')),
  ]);
  createSecureContext({ cert, key });
  return { cert, key };
}
