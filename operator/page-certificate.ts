import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Certificate } from '../page/server/page-server.ts';

/** Whoever renews a certificate does so days before it ends, and a kubelet brings it within two minutes. */
const CHECK_MS = 60_000;

export interface CertificateFiles {
  /** tls.crt and tls.key, as a Secret of type kubernetes.io/tls has them. */
  readonly directory: string;
  readonly checkMs?: number;
  readonly log: Logger;
}

/** @returns the certificate as soon as it can be read: its Secret may come later. @throws the signal's reason. */
export async function awaitCertificate(files: CertificateFiles, signal: AbortSignal): Promise<Certificate> {
  for (let told = false; ; told = true) {
    try {
      return await read(files.directory);
    } catch (error) {
      if (!told) files.log.warn({ err: error }, 'the live page waits for its certificate');
    }
    await delay(files.checkMs ?? CHECK_MS, undefined, { signal });
  }
}

/** Tells of each other certificate that takes the place of the one in use, until the signal. */
export async function followCertificate(
  files: CertificateFiles,
  inUse: Certificate,
  onChange: (certificate: Certificate) => void,
  signal: AbortSignal,
): Promise<void> {
  let last = inUse;
  while (!signal.aborted) {
    await delay(files.checkMs ?? CHECK_MS, undefined, { signal }).catch(() => undefined);
    try {
      const found = await read(files.directory);
      if (found.cert.equals(last.cert) && found.key.equals(last.key)) continue;
      onChange(found);
      last = found;
      files.log.info('the live page has another certificate');
    } catch (error) {
      // Key and certificate are two files: between them, they may not fit.
      files.log.warn(
        { err: error },
        'the live page keeps its certificate: the one that is there can not be used',
      );
    }
  }
}

async function read(directory: string): Promise<Certificate> {
  const [cert, key] = await Promise.all([
    readFile(path.join(directory, 'tls.crt')),
    readFile(path.join(directory, 'tls.key')),
  ]);
  return { cert, key };
}
