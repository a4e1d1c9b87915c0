import { expect, test } from 'vitest';
import { digestOf } from '../../image/digest.ts';
import { parseReference } from '../../image/reference.ts';
import { parseAuthFile } from '../../image/registry/credentials.ts';
import { createMirroredClient } from '../../image/registry/mirrored-client.ts';
import { parseRegistriesConf } from '../../oci/registries-conf.ts';
import { deadline } from '../fixtures/patience.ts';
import { startScriptedRegistry } from '../fixtures/registry/scripted-registry.ts';

/**
 * `insecure = true` of registries.conf is about one host. Who answers for that host, which anybody between it and the
 * builder may, says where a token is to be fetched and where contents are.
 */

const signal = deadline(60_000);

/** @returns what was asked of another host than the insecure registry, with its credentials. */
async function askedElsewhere(
  answer: (other: string) => { readonly status: number; readonly headers: Readonly<Record<string, string>> },
): Promise<readonly string[]> {
  const asked: string[] = [];
  const other = await startScriptedRegistry((request, response) => {
    asked.push(`${request.method} ${request.headers.authorization ?? 'nobody'}`);
    response.end('{"token":"t"}');
  });
  const host = await startScriptedRegistry((_request, response) => {
    const { status, headers } = answer(other);
    response.writeHead(status, headers).end();
  });
  const auth = Buffer.from('robot:hunter2').toString('base64');
  const client = createMirroredClient(
    { auths: parseAuthFile(JSON.stringify({ auths: { [host]: { auth } } })), pause: async () => undefined },
    {
      conf: parseRegistriesConf([
        { name: 'registries.conf', text: `[[registry]]\nlocation = "${host}"\ninsecure = true\n` },
      ]),
    },
  );
  const at = parseReference(`${host}/os`);
  await expect(client.getManifest({ ...at, tag: '1' }, signal)).rejects.toThrow();
  await expect(async () => {
    for await (const _ of client.readBlob(at, { digest: digestOf('a'), size: 1, mediaType: '' }, signal));
  }).rejects.toThrow();
  return asked;
}

test.each(['http', 'https'])(
  'a token is not fetched from another host without TLS, by a realm of %s',
  async (scheme) => {
    const asked = await askedElsewhere((other) => ({
      status: 401,
      headers: { 'www-authenticate': `Bearer realm="${scheme}://${other}/token",service="r"` },
    }));
    expect(asked).toEqual([]);
  },
);

test.each(['http', 'https'])(
  'contents are not read from another host without TLS, by a redirect to %s',
  async (scheme) => {
    const asked = await askedElsewhere((other) => ({
      status: 307,
      headers: { location: `${scheme}://${other}/` },
    }));
    expect(asked).toEqual([]);
  },
);
