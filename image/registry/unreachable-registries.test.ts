import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { deadline } from '../../test/fixtures/patience.ts';
import { noPause } from '../../test/fixtures/registry/pauses.ts';
import { startScriptedRegistry } from '../../test/fixtures/registry/scripted-registry.ts';
import { createAuthority } from '../../x509/certificate.ts';
import { parseReference } from '../reference.ts';
import { createRegistryClient } from './registry-client.ts';

/** What conditions, events and commands show of a registry that can't be reached: its name, and no code of Node.js. */
const signal = deadline(60_000);
/** Loopback, where nothing listens. */
const NOBODY = '127.9.9.9:1';

async function startTlsServer(): Promise<string> {
  const { certPem, keyPem } = createAuthority('own', new Date(), 600_000).issueServer({
    dns: [],
    ipv4: ['127.0.0.1'],
  });
  const server = createServer({ cert: certPem, key: keyPem }, (_request, response) => response.end());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const broken = () => startScriptedRegistry((_request, response) => response.destroy());

test.each<[what: string, host: () => Promise<string>, plain: boolean, why: string]>([
  ['nothing listens', async () => NOBODY, true, `connection refused by ${NOBODY}`],
  ['the name is unknown', async () => 'registry.invalid', false, 'the name registry.invalid '],
  [
    'its certificate is its own',
    startTlsServer,
    false,
    "the server's certificate is signed by an authority that is not trusted",
  ],
  ['it has no TLS', broken, false, ''],
  ['it hangs up', broken, true, 'the connection was closed before the whole response had arrived'],
])('where %s', async (_, start, isPlain, why) => {
  const host = await start();
  const client = createRegistryClient({ plainHttp: new Set(isPlain ? [host] : []), pause: noPause });
  const failure = await client.getManifest(parseReference(`${host}/os:1`), signal).catch(String);
  expect(failure).toContain(`GET ${host}/os manifests/1: ${why}`);
  expect(failure).not.toMatch(/\bE[A-Z]{4,}\b|getaddrinfo|hang up|_/);
});
