import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, request as httpsRequest } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Authority } from '../../x509/certificate.ts';

/** What Cluster API asked an extension, and what it was answered. */
export interface RelayedCall {
  /** `canupdatemachineset` and so on. */
  readonly hook: string;
  readonly request: unknown;
  readonly response: {
    readonly status?: string;
    readonly message?: string;
    readonly retryAfterSeconds?: number;
    readonly affectsAvailability?: boolean;
  };
  readonly ms: number;
}

/** Stands between Cluster API and an extension, and writes down what is said. */
export interface RelayedExtension extends AsyncDisposable {
  readonly url: string;
  readonly calls: readonly RelayedCall[];
}

/** @param target URL of the extension, whose certificate is the authority's, as the relay's is. */
export async function startRelay(authority: Authority, target: string): Promise<RelayedExtension> {
  const calls: RelayedCall[] = [];
  const { certPem, keyPem } = authority.issueServer({ dns: ['localhost'], ipv4: ['127.0.0.1'] });
  const server = createServer({ cert: certPem, key: keyPem }, (incoming, outgoing) => {
    relay(incoming, outgoing, { target, ca: authority.caPem, calls }).catch((error: unknown) => {
      outgoing.writeHead(502).end(String(error));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

async function relay(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  { target, ca, calls }: { readonly target: string; readonly ca: string; readonly calls: RelayedCall[] },
): Promise<void> {
  const body = await text(incoming);
  const begun = performance.now();
  const { method, url = '', headers } = incoming;
  const { host, ...kept } = headers;
  const sent = httpsRequest(new URL(url, target), { method, ca, headers: kept });
  sent.end(body);
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  const said = await text(answer);
  const hook = new URL(url, target).pathname.split('/')[3] ?? '';
  const ms = performance.now() - begun;
  calls.push({ hook, request: JSON.parse(body), response: JSON.parse(said) as RelayedCall['response'], ms });
  outgoing.writeHead(answer.statusCode ?? 500, { 'content-type': 'application/json' }).end(said);
}
