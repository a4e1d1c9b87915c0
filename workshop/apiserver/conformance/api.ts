import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import type { AdminAccess, ServiceAccountOnNode } from '../control-plane/control-plane.ts';
import { type ControlPlaneOptions, startControlPlane } from '../control-plane/start.ts';

/** JSON of an answer, as loosely as a test reads it. */
// biome-ignore lint/suspicious/noExplicitAny: answers of a server whose shape is what is tested
export type Body = any;

export interface Answer {
  readonly status: number;
  readonly body: Body;
  readonly headers: IncomingMessage['headers'];
}

export interface CallOptions {
  readonly contentType?: string;
  readonly accept?: string;
  readonly token?: string;
  readonly userAgent?: string;
}

export interface Watch {
  /** @returns the next event. @throws Error when none comes in time, or the watch has ended. */
  next(): Promise<{ readonly type: string; readonly object: Body }>;
  close(): void;
}

/** The API server under test, over HTTPS as any client sees it. */
export interface Api {
  call(method: string, path: string, body?: unknown, options?: CallOptions): Promise<Answer>;
  watch(path: string, options?: CallOptions): Promise<Watch>;
  kubeconfig(): string;
  /** Its administrator's, for a client of the test's own. */
  readonly access: AdminAccess;
  /** @returns a token of a service account; of a pod on a node where one is named. */
  tokenOf(account: ServiceAccountOnNode): Promise<string>;
  /**
   * Whether something runs garbage collection and keeps disruption budgets: kube-controller-manager's part, not
   * kube-apiserver's.
   */
  readonly controllers: boolean;
  /** Whether it is kube-apiserver, which does a few things in its own time. */
  readonly isReal: boolean;
  stop(): Promise<void>;
}

/** Milliseconds in which a control plane has started, also kube-apiserver with its etcd on a busy machine. */
export const START_MS = 300_000;
/** Milliseconds in which a server on loopback has long sent an event, also on a busy machine. */
const EVENT_DEADLINE = 60_000;

/** Starts the real API server where KUBEBUILDER_ASSETS names one, else the embedded. */
export async function startApi(
  options: ControlPlaneOptions = { assets: process.env['KUBEBUILDER_ASSETS'] },
): Promise<Api> {
  const plane = await startControlPlane(options, AbortSignal.timeout(START_MS));
  const { url, token, caPem } = plane.access;
  const open = async (method: string, path: string, body: unknown, options: CallOptions) => {
    const content = body === undefined ? '' : JSON.stringify(body);
    const sent = httpsRequest(new URL(path, url), {
      method,
      ca: caPem,
      headers: {
        Authorization: `Bearer ${options.token ?? token}`,
        Accept: options.accept ?? 'application/json',
        ...(body === undefined ? {} : { 'Content-Type': options.contentType ?? 'application/json' }),
        ...(options.userAgent === undefined ? {} : { 'User-Agent': options.userAgent }),
        // Node adds it to no DELETE by itself.
        'Content-Length': Buffer.byteLength(content),
      },
    });
    sent.end(content);
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    return response;
  };
  return {
    access: plane.access,
    tokenOf: (account) => plane.createToken(account),
    controllers: plane.hasControllers,
    isReal: options.assets !== undefined,
    kubeconfig: () => plane.kubeconfig(),
    stop: () => plane.stop(),
    async call(method, path, body, options = {}) {
      const response = await open(method, path, body, options);
      const content = await text(response);
      const isJson = response.headers['content-type']?.startsWith('application/json') === true;
      return {
        status: response.statusCode ?? 0,
        body: isJson ? JSON.parse(content) : content,
        headers: response.headers,
      };
    },
    async watch(path, options = {}) {
      return readWatch(await open('GET', path, undefined, options));
    },
  };
}

function readWatch(response: IncomingMessage): Watch {
  const lines = createInterface({ input: response })[Symbol.asyncIterator]();
  return {
    async next() {
      const line = await Promise.race([lines.next(), tooLate()]);
      if (line.done === true) throw new Error('the watch has ended');
      return JSON.parse(line.value) as { type: string; object: Body };
    },
    close: () => response.destroy(),
  };
}

async function tooLate(): Promise<never> {
  const signal = AbortSignal.timeout(EVENT_DEADLINE);
  await once(signal, 'abort');
  throw new Error(`no event of the watch within ${EVENT_DEADLINE} ms`);
}

let names = 0;

/** @returns a name that no other test of this process uses. */
export function uniqueName(prefix: string): string {
  names += 1;
  return `${prefix}-${process.pid}-${names}`;
}

/** Calls until a check of the answer holds. @throws Error with the last answer when it doesn't in time. */
export async function eventually<T>(look: () => Promise<T>, holds: (state: T) => boolean): Promise<T> {
  const end = Date.now() + EVENT_DEADLINE;
  for (;;) {
    const state = await look();
    if (holds(state)) return state;
    if (Date.now() > end) throw new Error(`what was waited for did not come: ${JSON.stringify(state)}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
