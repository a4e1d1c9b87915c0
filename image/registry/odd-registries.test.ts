import type { IncomingMessage, ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { deadline } from '../../test/fixtures/patience.ts';
import { noPause } from '../../test/fixtures/registry/pauses.ts';
import { startScriptedRegistry } from '../../test/fixtures/registry/scripted-registry.ts';
import { digestOf } from '../digest.ts';
import { parseReference } from '../reference.ts';
import { createRegistryClient } from './registry-client.ts';
import { ContentError } from './registry-error.ts';

/**
 * Registries, and proxies before them, that answer otherwise than distribution-spec has it: each as somebody met one.
 */

const signal = deadline(60_000);
const OCI_INDEX = 'application/vnd.oci.image.index.v1+json';
const OCI_MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const DOCKER_MANIFEST = 'application/vnd.docker.distribution.manifest.v2+json';
const index = Buffer.from('{"schemaVersion":2,"manifests":[]}');
const manifest = { mediaType: OCI_INDEX, bytes: index };
const content = Buffer.from('content');
const UPLOAD = '/v2/os/blobs/uploads/1';

/** @returns a client of a registry that answers so, and a name in it. */
async function registryThat(
  answer: (request: IncomingMessage, response: ServerResponse, host: string) => void,
) {
  let host = '';
  const asked: string[] = [];
  host = await startScriptedRegistry((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    request.resume();
    answer(request, response, host);
  });
  const client = createRegistryClient({ plainHttp: new Set([host]), pause: noPause });
  return { client, at: parseReference(`${host}/os:1`), asked };
}

describe('a success that is another than the one of the specification', () => {
  // containers/image 381: Quay says 202 of a manifest.
  test.each([200, 202])(
    '%i of a manifest is one where the registry has the manifest then',
    async (status) => {
      const { client, at } = await registryThat(({ method }, response) => {
        if (method === 'PUT') response.writeHead(status).end();
        else response.writeHead(200, { 'content-type': OCI_INDEX }).end(index);
      });
      expect(await client.putManifest(at, manifest, signal)).toBe(digestOf(index));
      expect((await client.putReferrer(at, manifest, signal)).digest).toBe(digestOf(index));
    },
  );

  // Quay's proxy says "200 Healthcheck requested" of whatever it is asked.
  test.each([
    ['nothing', 404, ''],
    ['something else', 200, '{"schemaVersion":2,"manifests":[],"annotations":{}}'],
  ])('200 of a manifest is none where the registry has %s then', async (_what, there, body) => {
    const { client, at } = await registryThat(({ method }, response) => {
      if (method === 'PUT') response.writeHead(200).end('Healthcheck requested');
      else response.writeHead(there, { 'content-type': OCI_INDEX }).end(body);
    });
    const put = client.putManifest(at, manifest, signal);
    await expect(put).rejects.toMatchObject({ status: 200, temporary: true });
    await expect(put).rejects.toThrow('HTTP 200, and the registry does not have the manifest then');
  });

  test.each([
    [200, 200, true],
    [202, 200, true],
    [200, 404, false],
  ])('%i of a blob, which is then %i', async (status, there, isStored) => {
    const { client, at } = await registryThat(({ method }, response) => {
      const statuses = { POST: 202, PUT: status, HEAD: there };
      response.writeHead(statuses[method as 'POST'] ?? 405, { location: UPLOAD }).end();
    });
    const put = client.putBlob(at, content, signal);
    if (isStored) expect(await put).toMatchObject({ sent: true });
    else await expect(put).rejects.toMatchObject({ status: 200, temporary: true });
  });

  test('an upload that begins with a page of a proxy is asked for again', async () => {
    let pages = 0;
    const { client, at } = await registryThat(({ method }, response) => {
      if (method === 'POST' && pages < 2) {
        pages += 1;
        response.writeHead(200).end('Healthcheck requested');
      } else response.writeHead(method === 'POST' ? 202 : 201, { location: UPLOAD }).end();
    });
    expect(await client.putBlob(at, content, signal)).toMatchObject({ sent: true });
    expect(pages).toBe(2);
  });

  test('201 of a piece', async () => {
    const piece = Buffer.alloc(1024 * 1024);
    const size = 40 * piece.length;
    const { client, at } = await registryThat(({ method }, response) =>
      response.writeHead(method === 'POST' ? 202 : 201, { location: UPLOAD }).end(),
    );
    const bytes = (async function* () {
      for (let sent = 0; sent < size; sent += piece.length) yield piece;
    })();
    await client.putBlobStream(at, { digest: digestOf(Buffer.alloc(size)), size }, bytes, signal);
  });
});

describe('a manifest', () => {
  // quay 1310, Azure 22919: a proxy that compresses what may be compressed.
  test('comes as it is from a proxy that compresses', async () => {
    const { client, at } = await registryThat(({ headers }, response) => {
      const isPlain = headers['accept-encoding'] === 'identity';
      response.writeHead(200, {
        'content-type': OCI_INDEX,
        ...(isPlain ? {} : { 'content-encoding': 'gzip' }),
      });
      response.end(isPlain ? index : gzipSync(index));
    });
    expect((await client.getManifest(at, signal)).digest).toBe(digestOf(index));
  });

  // moby 31318, go-containerregistry 617: a registry of files.
  test.each<[string | undefined, object, string]>([
    [undefined, { mediaType: DOCKER_MANIFEST, config: {} }, DOCKER_MANIFEST],
    ['text/plain; charset=utf-8', { mediaType: OCI_MANIFEST, config: {} }, OCI_MANIFEST],
    ['application/json', { manifests: [] }, OCI_INDEX],
    [
      'application/json',
      { config: { mediaType: 'application/vnd.docker.container.image.v1+json' }, layers: [] },
      DOCKER_MANIFEST,
    ],
    [
      'application/octet-stream',
      { config: { mediaType: 'application/vnd.oci.image.config.v1+json' }, layers: [] },
      OCI_MANIFEST,
    ],
    ['Application/Vnd.OCI.image.manifest.v1+JSON; charset=UTF-8', { config: {} }, OCI_MANIFEST],
    [OCI_INDEX, { mediaType: OCI_MANIFEST }, OCI_INDEX],
    ['text/html', { schemaVersion: 1 }, 'text/html'],
    ['text/html', [], 'text/html'],
  ])('with the Content-Type %j is known by what it says itself', async (type, document, expected) => {
    const { client, at } = await registryThat((_request, response) => {
      response
        .writeHead(200, type === undefined ? {} : { 'content-type': type })
        .end(JSON.stringify(document));
    });
    expect((await client.getManifest(at, signal)).mediaType).toBe(expected);
  });

  test.each([`sha512:${'0'.repeat(128)}`, 'latest', digestOf(index).toUpperCase(), ''])(
    'is taken by its tag, whatever Docker-Content-Digest %j means',
    async (header) => {
      const { client, at } = await registryThat((_request, response) => {
        response.writeHead(200, { 'content-type': OCI_INDEX, 'docker-content-digest': header }).end(index);
      });
      expect((await client.getManifest(at, signal)).digest).toBe(digestOf(index));
    },
  );
});

describe('a blob', () => {
  // pulp_container 579: a URL that is signed for GET.
  test.each([403, 405, 501])('is looked for by its first byte where HEAD is refused (%i)', async (status) => {
    const { client, at, asked } = await registryThat(({ method, url, headers }, response, host) => {
      if (url?.startsWith('/v2/') === true)
        response.writeHead(307, { location: `http://${host}/store` }).end();
      else if (method === 'HEAD') response.writeHead(status).end();
      else response.writeHead(headers.range === 'bytes=0-0' ? 206 : 400).end('c');
    });
    expect(await client.hasBlob(at, digestOf(content), signal)).toBe(true);
    expect(asked.map((line) => line.split(' ')[0])).toEqual(['HEAD', 'HEAD', 'GET', 'GET']);
  });

  test('is not there where neither is answered', async () => {
    const { client, at } = await registryThat(({ method }, response) =>
      response.writeHead(method === 'HEAD' ? 405 : 404).end(),
    );
    expect(await client.hasBlob(at, digestOf(content), signal)).toBe(false);
  });

  test('is refused where both are', async () => {
    const { client, at } = await registryThat((_request, response) => response.writeHead(403).end());
    await expect(client.hasBlob(at, digestOf(content), signal)).rejects.toMatchObject({ status: 403 });
  });
});

test.each([
  ['{"errors":[{"code":404,"message":"no such image"}]}', '404', 'no such image (HTTP 404)'],
  ['{"errors":[{"code":{"a":1},"message":["x"]}]}', '', 'HTTP 404'],
  ['{"errors":[null]}', '', 'HTTP 404'],
  ['{"errors":{"code":"X"}}', '', 'HTTP 404'],
  ['[]', '', 'HTTP 404'],
])('an error of another form, %s, is of its status all the same', async (body, code, why) => {
  const { client, at } = await registryThat((_request, response) => response.writeHead(404).end(body));
  const asked = client.getManifest(at, signal);
  await expect(asked).rejects.toMatchObject({ status: 404, code });
  await expect(asked).rejects.toThrow(`manifests/1: ${why}`);
});

test('a link to a next page that is no URL is no end of a list', async () => {
  const { client, at } = await registryThat((_request, response) =>
    response.writeHead(200, { link: '<http://[>; rel="next"' }).end('{"tags":["a"]}'),
  );
  await expect(client.listTags(at, signal)).rejects.toBeInstanceOf(ContentError);
});

test.each([
  [
    'Bearer realm=https://auth.example.org/token',
    'WWW-Authenticate: Bearer realm=https://auth.example.org/token',
  ],
  ['Negotiate', 'WWW-Authenticate: Negotiate'],
  ['', 'no WWW-Authenticate'],
])('credentials that are asked for in another way, %j, are not said to be missing', async (header, why) => {
  const { client, at } = await registryThat((_request, response) =>
    response.writeHead(401, header === '' ? {} : { 'www-authenticate': header }).end(),
  );
  await expect(client.getManifest(at, signal)).rejects.toThrow(
    `requires credentials in a way that is not supported (${why})`,
  );
});
