import { type ApiClient, ApiError, ApiUnreachable } from '../../cluster/api-client.ts';
import { shutdownSignal } from '../../cluster/signals.ts';
import { type ClusterFlags, connect } from '../change/live-cluster.ts';
import { CommandError, exitCodes } from './exit-codes.ts';

/**
 * Does a command's work on a cluster.
 *
 * @param work its signal is aborted by Ctrl-C.
 * @throws CommandError for a cluster that can't be reached, refuses a request or is interrupted; what else the work
 *   throws.
 */
export async function onCluster(
  flags: ClusterFlags,
  work: (client: ApiClient, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const signal = shutdownSignal();
  const client = await connect(flags);
  try {
    await work(client, signal);
  } catch (error) {
    if (error instanceof CommandError) throw error;
    if (signal.aborted) throw new CommandError('interrupted', exitCodes.interrupted, { cause: error });
    if (error instanceof ApiError || error instanceof ApiUnreachable || isNetworkError(error)) {
      throw new CommandError(error.message, exitCodes.unavailable, { cause: error });
    }
    throw error;
  }
}

/** Of a watch: Node's errors of sockets, name resolution and TLS carry the system's or OpenSSL's code. */
function isNetworkError(error: unknown): error is Error {
  return error instanceof Error && 'code' in error && typeof error.code === 'string';
}
