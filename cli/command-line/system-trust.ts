import tls from 'node:tls';

let isDone = false;

/**
 * Makes this process trust the certificates of the system besides those that Node.js brings: a company's CA is there,
 * and kubectl and podman use it. Reading them takes a tenth of a second, so it is done where a server needs it.
 * SSL_CERT_FILE and SSL_CERT_DIR name another store. Node.js before 22.19 can't; there NODE_EXTRA_CA_CERTS names
 * further certificates.
 */
export function trustSystemCertificates(): void {
  if (isDone || typeof tls.setDefaultCACertificates !== 'function') return;
  isDone = true;
  // A store has each certificate several times, in a bundle and in files of their own.
  const all = new Set([...tls.getCACertificates('default'), ...tls.getCACertificates('system')]);
  tls.setDefaultCACertificates([...all]);
}
