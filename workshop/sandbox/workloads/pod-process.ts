import { mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Container, Pod, Secret } from '../../../api/kubernetes.ts';
import type { DaemonHost } from '../node-kind.ts';
import { argumentsInVolumes, podAddress } from './pod-volumes.ts';

/** How the sandbox's processes reach the API server, and where they and their nodes are. */
export interface PodEnvironment {
  readonly apiServer: { readonly host: string; readonly port: number; readonly caPem: string };
  /** A token of the pod's service account, bound to its node. */
  createToken(account: {
    readonly namespace: string;
    readonly name: string;
    readonly node: string;
  }): Promise<string>;
  /** @returns how a daemon reaches its node, in place of the mounted host. */
  daemonHost(node: string): Promise<DaemonHost>;
  /** @returns the Secret, for a pod's volume. */
  findSecret(namespace: string, name: string): Promise<Secret | undefined>;
  /** Where a pod's service-account files go. */
  readonly podsDirectory: string;
}

export interface PodCommand {
  /** What runs in place of Shale's own program. */
  readonly program?: string;
  /** The image of the pod's container of Shale. */
  readonly image: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** Where the DaemonSet mounts the host. */
const HOST_MOUNT = '/host';
/** Where a container says why it ended, unless its pod names another file (Kubernetes, Container v1). */
const TERMINATION_LOG = '/dev/termination-log';

/** @returns whether a pod's container is one of Shale's own processes; any other is only pretended to run. */
export function isShaleImage(image: string | undefined): boolean {
  return image !== undefined && /(^|\/)shale(:[^/]*)?(@.*)?$/.test(image);
}

/**
 * Writes the service-account files that a kubelet would mount and works out the command of a pod's container of Shale.
 *
 * @param directories of the pod's volumes, by their names.
 * @returns arguments of `shale` and the environment, as the pod's spec has them, but for the mounted host.
 * @throws Error when the pod has no container or no node.
 */
export async function preparePod(
  pod: Pod,
  environment: Omit<PodEnvironment, 'findSecret'>,
  directories: ReadonlyMap<string, string> = new Map(),
): Promise<PodCommand> {
  const container = pod.spec.containers.find(({ image }) => isShaleImage(image));
  const node = pod.spec.nodeName;
  const namespace = pod.metadata.namespace ?? 'default';
  if (container === undefined || node === undefined) {
    throw new Error(`pod ${namespace}/${pod.metadata.name} has no container of Shale or no node`);
  }
  const directory = podDirectory(pod, environment);
  await mkdir(directory, { recursive: true });
  if (pod.spec.automountServiceAccountToken !== false) {
    const name = pod.spec.serviceAccountName ?? 'default';
    const token = await environment.createToken({ namespace, name, node });
    await writeFile(path.join(directory, 'token'), token, { mode: 0o600 });
    await writeFile(path.join(directory, 'ca.crt'), environment.apiServer.caPem);
    await writeFile(path.join(directory, 'namespace'), namespace);
  }
  const mounts = (container.volumeMounts ?? []) as readonly { name: string; mountPath: string }[];
  const args = argumentsInVolumes(container.args ?? [], mounts, directories);
  return {
    image: container.image ?? '',
    ...(await withHost(
      args.map((arg) => (arg === TERMINATION_LOG ? terminationLog(pod, environment) : arg)),
      () => environment.daemonHost(node),
    )),
    env: {
      PATH: process.env['PATH'] ?? '/usr/sbin:/usr/bin:/sbin:/bin',
      ...compileCache(process.env),
      ...tracing(process.env),
      KUBERNETES_SERVICE_HOST: environment.apiServer.host,
      KUBERNETES_SERVICE_PORT: String(environment.apiServer.port),
      SHALE_SERVICE_ACCOUNT_DIR: directory,
      ...resolveEnv(container, pod),
    },
  };
}

/** An image of Shale has the cache in it; here it is the one that bin/shale keeps. */
function compileCache({
  NODE_COMPILE_CACHE: directory,
}: NodeJS.ProcessEnv): Readonly<Record<string, string>> {
  return directory === undefined ? {} : { NODE_COMPILE_CACHE: directory };
}

/**
 * Of OpenTelemetry: in a cluster it comes from a ConfigMap (manifests/components/tracing), here from the environment of
 * the sandbox.
 */
function tracing(env: NodeJS.ProcessEnv): Readonly<Record<string, string>> {
  const set = Object.entries(env).filter(([name]) => name.startsWith('OTEL_'));
  return Object.fromEntries(set.map(([name, value = '']) => [name, value]));
}

/** @returns the file that stands for a pod's /dev/termination-log. */
export function terminationLog(pod: Pod, environment: Pick<PodEnvironment, 'podsDirectory'>): string {
  return path.join(podDirectory(pod, environment), 'termination-log');
}

/** Deletes what preparePod wrote. */
export async function forgetPod(pod: Pod, environment: PodEnvironment): Promise<void> {
  await rm(podDirectory(pod, environment), { recursive: true, force: true });
}

/** @returns where the files of a pod's process are. */
export function podDirectory(pod: Pod, environment: Pick<PodEnvironment, 'podsDirectory'>): string {
  return path.join(environment.podsDirectory, pod.metadata.uid ?? pod.metadata.name);
}

async function withHost(
  args: readonly string[],
  daemonHost: () => Promise<DaemonHost>,
): Promise<Pick<PodCommand, 'program' | 'args'>> {
  const at = args.indexOf('--host-root');
  if (at === -1 || args[at + 1] !== HOST_MOUNT) return { args };
  const host = await daemonHost();
  return { ...host, args: args.toSpliced(at, 2, ...host.args) };
}

/** Of core/v1's EnvVarSource, what Shale's manifests have. */
interface EnvSource {
  readonly fieldRef?: { readonly fieldPath?: string };
  readonly secretKeyRef?: { readonly optional?: boolean };
}

/**
 * The downward API's fields that Shale's manifests use (Kubernetes "Downward API"). What an optional Secret may set
 * comes from the environment of the sandbox.
 */
function resolveEnv(container: Container, pod: Pod): Record<string, string> {
  const fields: Readonly<Record<string, string | undefined>> = {
    'metadata.name': pod.metadata.name,
    'metadata.namespace': pod.metadata.namespace,
    'metadata.uid': pod.metadata.uid,
    'spec.nodeName': pod.spec.nodeName,
    'spec.serviceAccountName': pod.spec.serviceAccountName,
    'status.podIP': podAddress(pod),
  };
  const env: Record<string, string> = {};
  for (const { name, value, valueFrom } of container.env ?? []) {
    const { fieldRef, secretKeyRef } = (valueFrom ?? {}) as EnvSource;
    const path = fieldRef?.fieldPath;
    const isOptional = secretKeyRef?.optional === true;
    const given = isOptional ? process.env[name] : undefined;
    const resolved = value ?? (path === undefined ? given : fields[path]);
    if (resolved === undefined && isOptional) continue;
    if (resolved === undefined)
      throw new Error(`pod ${pod.metadata.name}: can't resolve environment variable ${name}`);
    env[name] = resolved;
  }
  return env;
}
