import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { type ConfigMap, ConfigMaps, Namespaces } from '../../api/kubernetes.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { tokenConnection } from '../../cluster/connection.ts';
import { createApiClient } from '../../cluster/http-api-client.ts';
import { createInformer } from '../../cluster/informer.ts';
import { createLogger } from '../../cluster/log.ts';
import { DIE_WITH_PARENT } from '../../workshop/apiserver/control-plane/child-process.ts';
import type { AdminAccess } from '../../workshop/apiserver/control-plane/control-plane.ts';

/**
 * What the operator's decisions are measured beside: a process that answers a written object with a written object, and
 * decides nothing. What it takes is the machine, the API server and its watches.
 */

const NAMESPACE = 'bench-echo';
const ASKED = 'asked';
const ANSWERED = 'answered';
const PAUSE_MS = 100;
const ACCESS = 'BENCH_ECHO_ACCESS';

function echoClient({ url, token, caPem }: AdminAccess): ApiClient {
  return createApiClient(tokenConnection(url, token, caPem));
}

const write = (client: ApiClient, name: string, count: string) =>
  client.patch(ConfigMaps, name, { type: 'merge', body: { data: { count } } }, { namespace: NAMESPACE });

function watched(client: ApiClient, name: string, onCount: (count: string) => void) {
  const log = createLogger('bench', 'error');
  const informer = createInformer<ConfigMap>(client, ConfigMaps, { namespace: NAMESPACE, log });
  informer.onChange(({ object }) => {
    if (object.metadata.name === name) onCount(object.data?.['count'] ?? '');
  });
  return informer;
}

/** Asks an echo in a process of its own, one question after the other, until it is stopped. */
export class Echo {
  readonly #client: ApiClient;
  readonly #child: ChildProcess;
  readonly #stopping = new AbortController();
  readonly #running: Promise<unknown>;
  #answered: (count: string) => void = () => undefined;
  #samples: number[] = [];

  private constructor(access: AdminAccess) {
    this.#client = echoClient(access);
    const env = { ...process.env, [ACCESS]: JSON.stringify(access) };
    const [command, ...before] = DIE_WITH_PARENT;
    this.#child = spawn(command, [...before, process.execPath, import.meta.filename], {
      stdio: ['ignore', 'inherit', 'inherit'],
      env,
    });
    const informer = watched(this.#client, ANSWERED, (count) => this.#answered(count));
    this.#running = Promise.all([informer.start(this.#stopping.signal), this.#ask()]);
  }

  static async start(access: AdminAccess): Promise<Echo> {
    const client = echoClient(access);
    await client.create(Namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } });
    for (const name of [ASKED, ANSWERED]) {
      const metadata = { name, namespace: NAMESPACE };
      await client.create(ConfigMaps, { apiVersion: 'v1', kind: 'ConfigMap', metadata });
    }
    return new Echo(access);
  }

  /** @returns ms of each answer since the last call, ascending. */
  take(): readonly number[] {
    const taken = this.#samples.toSorted((a, b) => a - b);
    this.#samples = [];
    return taken;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    const ended = once(this.#child, 'exit');
    if (this.#child.kill('SIGTERM')) await ended;
    await this.#running;
  }

  async #ask(): Promise<void> {
    const { signal } = this.#stopping;
    for (let count = 1; !signal.aborted; count += 1) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#answered = (answer) => answer === String(count) && resolve();
      signal.addEventListener('abort', () => resolve(), { once: true });
      const begun = performance.now();
      const isAsked = await write(this.#client, ASKED, String(count)).then(
        () => true,
        // A machine that stops for half a minute is no reason to end the benchmark.
        (error: unknown) => void process.stderr.write(`echo: ${String(error)}\n`),
      );
      if (isAsked !== true) continue;
      await promise;
      if (!signal.aborted) this.#samples.push(performance.now() - begun);
      await delay(PAUSE_MS, undefined, { signal }).catch(() => undefined);
    }
  }
}

const access = process.env[ACCESS];
if (import.meta.main && access !== undefined) {
  const client = echoClient(JSON.parse(access) as AdminAccess);
  const ended = new AbortController();
  process.once('SIGTERM', () => ended.abort());
  await watched(client, ASKED, (count) => {
    if (count !== '') void write(client, ANSWERED, count);
  }).start(ended.signal);
}
