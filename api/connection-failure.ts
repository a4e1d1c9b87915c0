/** What Node.js knows about a connection that failed (Node.js, "Errors", SystemError). */
interface ConnectionError extends Error {
  /** Of a system, of OpenSSL or of llhttp; errors of libraries may have numbers. */
  readonly code?: unknown;
  readonly syscall?: string;
  readonly address?: string;
  readonly port?: number;
  readonly hostname?: string;
  readonly host?: string;
}

/**
 * Why a connection failed, in words that need no knowledge of Node.js.
 *
 * @param error of a socket, a name resolution, TLS or HTTP; where a name has several addresses, of all of them.
 * @returns a clause without a full stop; undefined for any other error.
 */
export function connectionFailure(error: Error): string | undefined {
  // Each address has an error of its own; the first is as good as the others.
  if (error instanceof AggregateError && error.message === '')
    return error.errors[0] instanceof Error ? connectionFailure(error.errors[0]) : undefined;
  // fetch has the error of the connection as its cause, and says nothing of it.
  if (error instanceof TypeError && error.message === 'fetch failed' && error.cause instanceof Error)
    return connectionFailure(error.cause);
  if (error.name === 'TimeoutError') return 'no response in time';
  if (isUntrusted(error)) return "the server's certificate is signed by an authority that is not trusted";
  return byCode(error);
}

function byCode(error: ConnectionError): string | undefined {
  const { code, syscall, address, port, hostname, host } = error;
  const where = address === undefined ? 'the server' : `${address}${port === undefined ? '' : `:${port}`}`;
  switch (code) {
    case 'ECONNREFUSED':
      return `connection refused by ${where}`;
    case 'ENOTFOUND':
      return `the name ${hostname ?? 'of the server'} does not exist`;
    case 'EAI_AGAIN':
      return `the name ${hostname ?? 'of the server'} can't be resolved at the moment`;
    case 'ETIMEDOUT':
      return `${where} does not respond`;
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return `there is no route to ${where}`;
    case 'ECONNRESET':
    case 'EPIPE':
      return 'the connection was closed before the whole response had arrived';
    case 'EADDRINUSE':
      return `${address === undefined ? 'the address' : where} is already in use`;
    case 'ENOENT':
      return syscall === 'connect' ? `the socket ${where} does not exist` : undefined;
    case 'EACCES':
      if (syscall === 'connect') return `permission to connect to ${where} is denied`;
      return syscall === 'listen' ? `permission to listen on ${where} is denied` : undefined;
    case 'EPROTO':
    case 'ERR_SSL_WRONG_VERSION_NUMBER':
    case 'ERR_SSL_PACKET_LENGTH_TOO_LONG':
      return 'the server does not use TLS, or none that is understood';
    case 'CERT_HAS_EXPIRED':
      return "the server's certificate has expired";
    case 'CERT_NOT_YET_VALID':
      return "the server's certificate is not valid yet; check this machine's clock";
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return `the server's certificate is not for the name ${host ?? 'that was used'}`;
    default:
      return typeof code === 'string' && code.startsWith('HPE_')
        ? 'the server does not respond with HTTP'
        : undefined;
  }
}

const OF_UNTRUSTED_AUTHORITY: ReadonlySet<unknown> = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
]);

/** @returns whether a server's certificate is of an authority that is not trusted. */
export function isUntrusted(error: unknown): boolean {
  return error instanceof Error && 'code' in error && OF_UNTRUSTED_AUTHORITY.has(error.code);
}
