import { userInfo } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { formatDuration } from '../../api/duration.ts';
import { errorMessage } from '../../api/error-message.ts';
import { DEFAULT_LEASE_NAMESPACE, DEFAULT_NAMESPACE } from '../../api/names.ts';
import type { Kind, KubernetesObject } from '../../api/object.ts';
import { REQUEST_DEADLINE_MS } from '../../cluster/api-calls.ts';
import type { ApiClient, Selection } from '../../cluster/api-client.ts';
import { ApiError, ApiUnreachable, isNotFound, isTemporary } from '../../cluster/api-client.ts';
import {
  type Connection,
  embeddedConnection,
  hasOwnTrust,
  impersonating,
  kubeconfigConnection,
} from '../../cluster/connection.ts';
import { createApiClient } from '../../cluster/http-api-client.ts';
import { shutdownSignal } from '../../cluster/process.ts';
import { CommandError, exitCodes, UsageError } from './exit-codes.ts';
import { parseDurationFlag } from './quantities.ts';
import { trustSystemCertificates } from './system-trust.ts';

/** Flags of commands that access a cluster. */
export interface ClusterFlags {
  readonly kubeconfig?: string | undefined;
  /** No flag: a kubeconfig that came with an object, instead of a file. */
  readonly kubeconfigText?: string | undefined;
  readonly context?: string | undefined;
  /** User to impersonate, and the groups. */
  readonly as?: string;
  readonly asGroup?: readonly string[];
  /** ms; for one request. */
  readonly requestTimeout?: number;
  /** Where Shale runs. */
  readonly namespace: string;
}

/** ms; an interactive command must not hang when the API server doesn't respond. */
const DEADLINE_MS = 60_000;

function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

/** ms; the API server ends a request after that time (kube-apiserver, --request-timeout). */
const LONGEST_REQUEST_MS = 60_000;

function requestTimeout(text: string): number {
  const ms = parseDurationFlag(text);
  if (ms <= LONGEST_REQUEST_MS) return ms;
  throw new InvalidArgumentError('Expected at most 1m: the API server ends longer requests itself');
}

/**
 * @returns the command with `--kubeconfig`, `--context`, `--namespace`, `--as`, `--as-group` and `--request-timeout`,
 *   as kubectl has them.
 */
export function withClusterFlags(command: Command): Command {
  return command
    .option('--kubeconfig <file>', 'kubeconfig file of the cluster; default: the one that kubectl uses')
    .option('--context <name>', 'context of the kubeconfig to use')
    .option('-n, --namespace <name>', 'namespace in which Shale runs', DEFAULT_NAMESPACE)
    .option('--as <user>', 'user to impersonate, such as system:serviceaccount:NAMESPACE:NAME')
    .option('--as-group <group>', 'group to impersonate, with --as; may be repeated', collect)
    .addOption(
      new Option('--request-timeout <span>', 'maximum time for one request to the API server, at most 1m')
        .argParser(requestTimeout)
        .default(REQUEST_DEADLINE_MS, formatDuration(REQUEST_DEADLINE_MS)),
    );
}

/** @returns the command with `--lease-namespace`, as the operator has it. */
export function withLeaseNamespace(command: Command): Command {
  return command.option('--lease-namespace <name>', 'namespace of the node leases', DEFAULT_LEASE_NAMESPACE);
}

/** @returns a client of the cluster that the flags or the environment name. @throws CommandError when there is none. */
export async function connect(flags: Partial<ClusterFlags>): Promise<ApiClient> {
  return clientOf(await connectionOf(flags), flags);
}

/** @returns a client of a connection, with the flags' limits. */
export function clientOf(connection: Connection, flags: Partial<ClusterFlags>): ApiClient {
  const { requestTimeout: requestDeadlineMs } = flags;
  return createApiClient(connection, { fieldManager: 'shale-cli', requestDeadlineMs });
}

/**
 * @returns the connection to the cluster of the flags or the environment, as the user of the flags.
 * @throws {CommandError} when there is none.
 */
export async function connectionOf(flags: Partial<ClusterFlags>): Promise<Connection> {
  const { kubeconfig, kubeconfigText, context, as: user, asGroup: groups = [] } = flags;
  if (user === undefined && groups.length > 0)
    throw new UsageError('--as-group requires --as, the user to impersonate');
  const connection = await (kubeconfigText === undefined
    ? openConnection(kubeconfig, context)
    : openEmbedded(kubeconfigText));
  if (!hasOwnTrust(connection)) trustSystemCertificates();
  return user === undefined ? connection : impersonating(connection, user, groups);
}

async function openConnection(
  kubeconfig: string | undefined,
  context: string | undefined,
): Promise<Connection> {
  try {
    return await kubeconfigConnection({
      path: kubeconfig,
      context,
    });
  } catch (error) {
    const why = whyUnread(error, kubeconfig ?? process.env['KUBECONFIG'] ?? 'the kubeconfig');
    throw new CommandError(
      `no cluster found: ${why}; specify one with --kubeconfig or KUBECONFIG, or pass files if the command accepts them`,
      exitCodes.unavailable,
      {
        cause: error,
      },
    );
  }
}

async function openEmbedded(text: string): Promise<Connection> {
  try {
    return await embeddedConnection(text);
  } catch (error) {
    throw new CommandError(errorMessage(error), exitCodes.unavailable, { cause: error });
  }
}

/** @param file that was read, for errors that don't name it. */
function whyUnread(error: unknown, file: string): string {
  const { code, path } = error as NodeJS.ErrnoException;
  if (code === 'EISDIR') return `${file} is a directory; expected a file`;
  // With the lines around the error, which may hold a token.
  if (error instanceof Error && error.name === 'YAMLException')
    return `${file} is not YAML: ${error.message.split('\n')[0]}`;
  if (code === 'ENOENT' && path !== undefined) return `${path} does not exist`;
  if (code === 'EACCES' && path !== undefined) return `${path} can't be read: permission denied`;
  return errorMessage(error);
}

/**
 * Runs a command on a cluster.
 *
 * @param work its signal is aborted by Ctrl-C.
 * @returns what the work returns.
 * @throws {CommandError} when the cluster can't be reached or refuses a request, and when the command is interrupted;
 *   any other error of the work.
 */
export async function onCluster<T>(
  flags: ClusterFlags,
  work: (client: ApiClient, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const signal = shutdownSignal();
  const client = await connect(flags);
  try {
    return await work(client, signal);
  } catch (error) {
    if (error instanceof CommandError) throw error;
    if (signal.aborted) throw new CommandError('interrupted', exitCodes.interrupted, { cause: error });
    if (error instanceof ApiError || error instanceof ApiUnreachable) {
      throw new CommandError(error.message, exitCodes.unavailable, { cause: error });
    }
    if (isNetworkError(error)) {
      throw new CommandError(errorMessage(error), exitCodes.unavailable, { cause: error });
    }
    throw error;
  }
}

/** For watches: Node's errors of sockets, name resolution and TLS have a code of the system or of OpenSSL. */
function isNetworkError(error: unknown): error is Error {
  return error instanceof Error && 'code' in error && typeof error.code === 'string';
}

interface SelfSubjectReview extends KubernetesObject {
  readonly status?: { readonly userInfo?: { readonly username?: string } };
}

const SelfSubjectReviews: Kind<SelfSubjectReview> = {
  group: 'authentication.k8s.io',
  version: 'v1',
  kind: 'SelfSubjectReview',
  plural: 'selfsubjectreviews',
  namespaced: false,
};

/** @returns the user as the API server authenticates it; the local user when it doesn't serve that review. */
export async function whoAmI(client: ApiClient, signal: AbortSignal): Promise<string> {
  return (await authenticatedUser(client, signal)) ?? userInfo().username;
}

/** @returns the user as the API server authenticates it; undefined when it doesn't serve that review. */
export async function authenticatedUser(client: ApiClient, signal: AbortSignal): Promise<string | undefined> {
  const question = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview', metadata: {} };
  try {
    const { status } = await client.create(SelfSubjectReviews, question, { signal });
    return status?.userInfo?.username;
  } catch (error) {
    // SelfSubjectReview is available since Kubernetes 1.28, and an admin may have disabled it.
    if (error instanceof ApiError && (error.status === 403 || error.status === 404)) return undefined;
    throw error;
  }
}

/**
 * @returns every object of a kind. @throws {CommandError} when they can't be read, or the cluster doesn't have the
 * kind.
 */
export async function readAll<T extends KubernetesObject>(
  client: ApiClient,
  kind: Kind<T>,
  selection: Selection = {},
): Promise<readonly T[]> {
  const deadline = AbortSignal.timeout(DEADLINE_MS);
  const signal = selection.signal === undefined ? deadline : AbortSignal.any([deadline, selection.signal]);
  try {
    return (await client.list(kind, { ...selection, signal })).items;
  } catch (error) {
    selection.signal?.throwIfAborted();
    const cause = deadline.aborted ? new ApiUnreachable(`list ${kind.plural}`, deadline.reason) : error;
    const why = isNotFound(error)
      ? `the cluster does not have ${kind.plural}.${kind.group}: install Shale's manifests first (kubectl apply -k manifests/base)`
      : errorMessage(cause);
    throw new CommandError(why, exitCodes.unavailable, { cause });
  }
}

/** Leases and NodeMaintenances may belong to another team: a user who can't read them still gets everything else. */
export async function unlessForbidden<T>(read: Promise<T>): Promise<T | undefined> {
  try {
    return await read;
  } catch (error) {
    const cause = causeOf(error);
    if (cause instanceof ApiError && cause.status === 403) return undefined;
    throw error;
  }
}

function causeOf(error: unknown): unknown {
  return error instanceof CommandError ? error.cause : error;
}

/** ms between two attempts while the API server is unavailable. */
const RETRY_MS = 1_000;

interface RetryOptions {
  /** By performance.now(). */
  readonly deadline: number;
  /** Reports why the command is still waiting. */
  readonly show: (text: string) => void;
  readonly signal: AbortSignal;
}

/**
 * Repeats a step of a command that waits while the API server is unavailable: nodes go on with their update while a
 * control plane restarts.
 *
 * @param act reads, or writes something that may be written twice.
 * @throws what `act` throws when it is not temporary, or when the deadline has passed.
 */
export async function retryUntil<T>(
  { deadline, show, signal }: RetryOptions,
  act: () => Promise<T>,
): Promise<T> {
  for (;;) {
    try {
      return await act();
    } catch (error) {
      const left = deadline - performance.now();
      if (signal.aborted || left <= 0 || !isTemporary(causeOf(error))) throw error;
      show(`waiting for the API server: ${errorMessage(error)}`);
      await delay(Math.min(RETRY_MS, left), undefined, { signal });
    }
  }
}
