/** What Node.js knows about a connection that failed (Node.js, "Errors", SystemError). */
interface ConnectionError extends Error {
  readonly code?: string;
  readonly address?: string;
  readonly port?: number;
  readonly hostname?: string;
  readonly host?: string;
}

const NOT_TRUSTED =
  "the server's certificate is signed by an authority that is not trusted: the kubeconfig or the system has to have its certificate";

/**
 * Why a connection failed, in words that need no knowledge of Node.js.
 *
 * @param error of a socket, a name resolution or TLS; where a name has several addresses, of all of them.
 * @returns a clause without a full stop; the error's own message where it says more.
 */
export function whyDisconnected(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // Each address has an error of its own; the first is as good as the others.
  if (error instanceof AggregateError && error.errors.length > 0) return whyDisconnected(error.errors[0]);
  const { code = '', address, port, hostname, host } = error as ConnectionError;
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
    case 'DEPTH_ZERO_SELF_SIGNED_CERT':
    case 'SELF_SIGNED_CERT_IN_CHAIN':
    case 'UNABLE_TO_VERIFY_LEAF_SIGNATURE':
    case 'UNABLE_TO_GET_ISSUER_CERT':
    case 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY':
      return NOT_TRUSTED;
    case 'CERT_HAS_EXPIRED':
      return "the server's certificate has expired";
    case 'CERT_NOT_YET_VALID':
      return "the server's certificate is not valid yet; check this machine's clock";
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return `the server's certificate is not for the name ${host ?? 'that was used'}`;
    default:
      return error.message || code || error.name;
  }
}
