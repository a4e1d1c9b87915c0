import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { type Pod, Pods, Secrets } from '../../../api/kubernetes.ts';
import { BUILDS_NAMESPACE } from '../../../api/names.ts';
import { plural } from '../../../api/plural.ts';
import { type ApiClient, isTemporary } from '../../../cluster/api-client.ts';
import { createAuthority } from '../../../x509/certificate.ts';
import { type ContainerEngine, EngineError } from '../container-engine.ts';
import { ENGINE_PORT, type EngineAccess } from '../engine-access.ts';
import type { Engines, EngineUser } from '../engines.ts';
import { type EnginePodSettings, engineLabels, enginePod, engineSecret } from './engine-pod.ts';
import { podError, podState } from './pod-state.ts';

export interface PodEnginesOptions {
  readonly client: ApiClient;
  readonly log: Logger;
  readonly settings: EnginePodSettings;
  /** ms that an engine may take for one image. */
  readonly limitMs: number;
  /** ms that a pod may take until its engine responds; default five minutes. */
  readonly startMs?: number;
  /** @returns a client of the engine. Default: the Docker Engine API. */
  readonly connect?: (access: EngineAccess) => Promise<ContainerEngine>;
}

/** Enough for pulling an image, and for a node that an autoscaler adds; the next attempts of the build follow. */
const START_MS = 300_000;
const POLL_MS = 500;
/** For cleaning up after a build: its own signal may already be aborted. */
const DELETE_MS = 20_000;
/** A connection breaks before the kubelet reports why. */
const REPORT_MS = 5_000;
const SELECTOR = Object.entries(engineLabels)
  .map(([key, value]) => `${key}=${value}`)
  .join(',');

/** The side of the TLS connection that never leaves this process. */
type ClientTls = Pick<EngineAccess & { kind: 'tls' }, 'serverName' | 'ca' | 'cert' | 'key'>;

/** An engine in a pod of its own for each image, with certificates of its own. */
export class PodEngines implements Engines {
  readonly available = true;
  readonly #options: PodEnginesOptions;
  /** Names of engines that this process works with. */
  readonly #inUse = new Set<string>();
  /** Names of engines whose deletion failed. */
  readonly #undeleted = new Set<string>();

  constructor(options: PodEnginesOptions) {
    this.#options = options;
  }

  /** @throws EngineError that says why the pod did not start, or ended before the work was done. */
  async use<T>(
    user: EngineUser,
    work: (engine: ContainerEngine) => Promise<T>,
    signal: AbortSignal,
  ): Promise<T> {
    signal.throwIfAborted();
    for (const name of this.#undeleted) await this.#delete(name);
    const name = `engine-${randomBytes(6).toString('hex')}`;
    this.#inUse.add(name);
    try {
      const tls = await this.#create(name, user, signal);
      const engine = await this.#started(name, tls, signal);
      return await work(engine).catch((error: unknown) => this.#explain(name, error, signal));
    } finally {
      this.#inUse.delete(name);
      await this.#delete(name);
    }
  }

  /**
   * One builder leads at a time, so every engine that this one doesn't use is an earlier builder's, or is one that
   * could not be deleted. Secrets without a pod are deleted by the garbage collector.
   *
   * @throws ApiError; AggregateError of the engines that can't be deleted.
   */
  async removeLeftovers(signal: AbortSignal): Promise<void> {
    const { client, log } = this.#options;
    const where = { namespace: BUILDS_NAMESPACE, signal };
    const { items } = await client.list(Pods, { ...where, labelSelector: SELECTOR });
    const failures: unknown[] = [];
    for (const { metadata } of items) {
      signal.throwIfAborted();
      if (this.#inUse.has(metadata.name)) continue;
      log.info({ pod: metadata.name }, 'deleting an engine that no build uses');
      const failure = await this.#delete(metadata.name);
      if (failure !== undefined) failures.push(failure.error);
    }
    if (failures.length > 0)
      throw new AggregateError(failures, `${plural(failures.length, 'engine')} could not be deleted`);
  }

  async #create(name: string, user: EngineUser, signal: AbortSignal): Promise<ClientTls> {
    const { client, settings, limitMs, startMs = START_MS } = this.#options;
    const { build } = user;
    if (build === undefined)
      throw new EngineError('EngineFailed', 'an engine in a pod needs a MachineOSBuild');
    const lifetimeMs = limitMs + startMs;
    // Not the name of the server: a certificate whose issuer is its subject would be taken for a self-signed one.
    const authority = createAuthority(`ca of ${name}`, new Date(), lifetimeMs);
    const server = authority.issueServer({ dns: [name], ipv4: [] });
    const { certPem, keyPem } = authority.issueClient('machine-os-builder');
    const request = { name, user: { ...user, build }, deadlineSeconds: Math.ceil(lifetimeMs / 1000) };
    const at = { namespace: BUILDS_NAMESPACE, signal };
    // The pod first: its Secret names it as its owner. The kubelet waits for the Secret.
    const pod = await client.create(Pods, enginePod(request, settings), at).catch(unusable);
    await client.create(Secrets, engineSecret(pod, server, authority.caPem), at).catch(unusable);
    return { serverName: name, ca: authority.caPem, cert: certPem, key: keyPem };
  }

  async #started(name: string, tls: ClientTls, signal: AbortSignal): Promise<ContainerEngine> {
    const { startMs = START_MS, connect = connectByDocker } = this.#options;
    const deadline = performance.now() + startMs;
    let why = 'it was created';
    for (;;) {
      const state = podState(await this.#find(name, signal));
      if (state.kind === 'failed') throw podError(name, state);
      if (state.kind === 'starting') why = state.why;
      else {
        const engine = await connect({ kind: 'tls', host: state.ip, port: ENGINE_PORT, ...tls });
        const failure = await engine.about(signal).then(
          () => undefined,
          (error: unknown) => error,
        );
        if (failure === undefined) return engine;
        signal.throwIfAborted();
        if (!(failure instanceof EngineError)) throw failure;
        why = failure.message;
      }
      if (performance.now() > deadline) {
        const late = `it did not start within ${Math.round(startMs / 1000)} s: ${why}`;
        throw podError(name, { kind: 'failed', reason: 'EngineUnavailable', why: late });
      }
      await delay(POLL_MS, undefined, { signal });
    }
  }

  /** What the pod reports counts more than that its connection broke. */
  async #explain(name: string, error: unknown, signal: AbortSignal): Promise<never> {
    if (!(error instanceof EngineError)) throw error;
    const deadline = performance.now() + REPORT_MS;
    while (error.reason === 'EngineUnavailable' && !signal.aborted && performance.now() < deadline) {
      // An API server that does not answer knows no better reason.
      const state = await this.#find(name, signal).then(podState, () => undefined);
      if (state?.kind === 'failed') throw podError(name, state, error);
      await delay(POLL_MS);
    }
    throw error;
  }

  async #find(name: string, signal: AbortSignal): Promise<Pod | undefined> {
    return this.#options.client.find(Pods, name, { namespace: BUILDS_NAMESPACE, signal });
  }

  /**
   * What can't be deleted now is deleted before the next use, and ends by itself at its deadline.
   *
   * @returns why it could not be deleted; undefined once it is.
   */
  async #delete(name: string): Promise<{ readonly error: unknown } | undefined> {
    const { client, log } = this.#options;
    const where = { namespace: BUILDS_NAMESPACE, signal: AbortSignal.timeout(DELETE_MS) };
    try {
      await client.delete(Pods, name, where);
      await client.delete(Secrets, name, where);
      this.#undeleted.delete(name);
      return undefined;
    } catch (error) {
      this.#undeleted.add(name);
      log.warn({ pod: name, err: error }, 'the pod of a container engine could not be deleted');
      return { error };
    }
  }
}

/** @throws EngineError for what the API server refused; the error itself if it can't be reached. */
function unusable(error: unknown): never {
  if (isTemporary(error) || !(error instanceof Error)) throw error;
  throw new EngineError('EngineUnavailable', `the pod of the container engine: ${error.message}`, {
    cause: error,
  });
}

async function connectByDocker(access: EngineAccess): Promise<ContainerEngine> {
  const { dockerEngine } = await import('../docker-engine.ts');
  return dockerEngine(access, { chroot: true });
}
