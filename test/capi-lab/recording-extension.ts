import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Authority } from '../../x509/certificate.ts';

const API = 'hooks.runtime.cluster.x-k8s.io/v1alpha1';
const HOOKS = ['CanUpdateMachine', 'CanUpdateMachineSet', 'UpdateMachine'] as const;
export type Hook = (typeof HOOKS)[number];

export type HookBody = Readonly<Record<string, unknown>>;

/** A request of Cluster API's and what it was answered. */
export interface Exchange {
  readonly hook: Hook | 'Discovery';
  /** With its query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly request: HookBody;
  readonly response: HookBody;
}

/** What the extension says to each hook: only what differs from a plain success. */
export type Answers = Readonly<Record<Hook, (request: HookBody) => HookBody | Promise<HookBody>>>;

/** A Runtime Extension that says what a test wants and keeps the conversation. */
export interface RecordingExtension extends AsyncDisposable {
  readonly url: string;
  readonly caPem: string;
  /** All so far, in their order. */
  readonly exchanges: readonly Exchange[];
  /** From now on. */
  answer(answers: Partial<Answers>): void;
}

/** To every hook: nothing can be done in place. */
const REFUSING: Answers = {
  CanUpdateMachine: () => ({}),
  CanUpdateMachineSet: () => ({}),
  UpdateMachine: () => ({ status: 'Failure', message: 'this extension updates no machine' }),
};

/** Starts one on loopback, which refuses until it is told otherwise. */
export async function startRecordingExtension(authority: Authority): Promise<RecordingExtension> {
  const exchanges: Exchange[] = [];
  let answers = REFUSING;
  const { certPem, keyPem } = authority.issueServer({ dns: ['localhost'], ipv4: ['127.0.0.1'] });
  const answer = (request: IncomingMessage, response: ServerResponse) =>
    respond(request, response, () => answers, exchanges);
  const server = createServer({ cert: certPem, key: keyPem }, (request, response) => {
    answer(request, response).catch((error: unknown) => {
      response.writeHead(500).end(String(error));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    caPem: authority.caPem,
    exchanges,
    answer: (next) => {
      answers = { ...REFUSING, ...next };
    },
    [Symbol.asyncDispose]: () => stop(server),
  };
}

async function respond(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  answers: () => Answers,
  exchanges: Exchange[],
): Promise<void> {
  const { url = '' } = incoming;
  const hook = hookOf(url);
  const body = await text(incoming);
  if (hook === undefined) {
    outgoing.writeHead(404).end(`there is no hook at ${url}`);
    return;
  }
  const request = JSON.parse(body) as HookBody;
  const own = hook === 'Discovery' ? discovery() : await answers()[hook](request);
  const response = { apiVersion: API, kind: `${hook}Response`, status: 'Success', ...own };
  exchanges.push({ hook, path: url, headers: headersOf(incoming), request, response });
  outgoing.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(response));
}

/** `/GROUP/VERSION/HOOK/HANDLER?timeout=10s` (Cluster API, GVHToPath). */
function hookOf(url: string): Exchange['hook'] | undefined {
  const [, group, version, hook] = new URL(url, 'https://localhost').pathname.split('/');
  if (`${group}/${version}` !== API) return undefined;
  return ([...HOOKS, 'Discovery'] as const).find((each) => each.toLowerCase() === hook);
}

function discovery(): HookBody {
  return {
    handlers: HOOKS.map((hook) => ({
      name: hook.toLowerCase(),
      requestHook: { apiVersion: API, hook },
      timeoutSeconds: 10,
      failurePolicy: 'Fail',
    })),
  };
}

function headersOf({ headers }: IncomingMessage): Readonly<Record<string, string>> {
  const kept = Object.entries(headers).filter(([name]) => name !== 'host' && name !== 'content-length');
  return Object.fromEntries(kept.map(([name, value]) => [name, String(value)]));
}

async function stop(server: Server): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  server.closeAllConnections();
  await closed;
}
