import { globalAgent } from 'node:http';
import { describe, expect, test, vi } from 'vitest';
import { deadline, patience } from '../../test/fixtures/patience.ts';
import { MemoryRegistry } from '../../test/fixtures/registry/memory-registry.ts';
import { startScriptedRegistry } from '../../test/fixtures/registry/scripted-registry.ts';
import { digestOf } from '../digest.ts';
import { parseReference } from '../reference.ts';
import { createRegistryClient } from './registry-client.ts';
import { ContentError, TagTaken } from './registry-error.ts';

const signal = deadline(60_000);
const OCI_INDEX = 'application/vnd.oci.image.index.v1+json';
const manifest = { mediaType: OCI_INDEX, bytes: Buffer.from('{"schemaVersion":2,"manifests":[]}') };

async function setUp() {
  const registry = await MemoryRegistry.start();
  const client = createRegistryClient({ plainHttp: new Set([registry.host]) });
  return { registry, client, at: parseReference(`${registry.host}/os/worker:1`) };
}

test('no request keeps a connection: every answer is read to its end', async () => {
  const { registry, client, at } = await setUp();
  registry.mounts = false;
  const content = Buffer.from('content');
  const { digest } = await client.putBlob(at, content, signal);
  await client.putBlob(at, content, signal);
  const other = parseReference(`${registry.host}/os/infra`);
  await client.mountBlob(other, digest, 'os/worker', signal);
  await client.hasBlob(at, digest, signal);
  await client.hasBlob(other, digest, signal);
  const listed = await client.putManifest(at, manifest, signal);
  await client.getManifest(at, signal);
  await client.getReferrers(at, listed, signal);
  await client.putBlobStream(other, { digest, size: content.length }, chunksOf(content), signal);
  await client.deleteManifest(at, listed, signal);
  await client.deleteManifest(at, listed, signal);
  expect(registry.requests.length).toBeGreaterThan(12);
  const held = () => Object.keys(globalAgent.sockets).filter((name) => name.startsWith(`${registry.host}:`));
  await vi.waitFor(() => expect(held()).toEqual([]), { timeout: patience(5_000) });
});

async function* chunksOf(...chunks: readonly Uint8Array[]) {
  yield* chunks;
}

describe('a manifest', () => {
  test('that is refused for the digest of a blob is sent again, four times at most', async () => {
    const { registry, client, at } = await setUp();
    registry.refuse = (line) =>
      line.startsWith('PUT') ? { status: 400, code: 'DIGEST_INVALID' } : undefined;
    const requests = await registry.requestsOf(() =>
      expect(client.putManifest(at, manifest, signal)).rejects.toMatchObject({ code: 'DIGEST_INVALID' }),
    );
    expect(requests).toHaveLength(4);
  });

  test.each([
    { status: 400, code: 'TAG_INVALID' },
    { status: 403, code: 'DENIED' },
    { status: 409, code: 'TAG_EXISTS' },
    { status: 412, code: 'PRECONDITION' },
  ])(
    'whose tag is not moved ($status $code) is pushed if the tag names it, and nothing else',
    async (refusal) => {
      const { registry, client, at } = await setUp();
      registry.keepsTags = refusal;
      const digest = await client.putManifest(at, manifest, signal);
      expect(await client.putManifest(at, manifest, signal)).toBe(digest);
      const other = {
        ...manifest,
        bytes: Buffer.from('{"schemaVersion":2,"manifests":[],"annotations":{}}'),
      };
      const refused = client.putManifest(at, other, signal);
      await expect(refused).rejects.toBeInstanceOf(TagTaken);
      await expect(refused).rejects.toMatchObject({ ...refusal, temporary: false });
      await expect(refused).rejects.toThrow(`refused (HTTP ${refusal.status}); 1 names ${digest} already`);
      expect((await client.getManifest(at, signal)).digest).toBe(digest);
      // Without a tag there is none to be kept.
      const { tag: _, ...untagged } = at;
      expect(await client.putManifest(untagged, other, signal)).toBe(digestOf(other.bytes));
    },
  );

  test('that is refused, of which the registry then says nothing, is refused by both', async () => {
    const { registry, client, at } = await setUp();
    registry.refuse = (line) =>
      line.startsWith('PUT') ? { status: 403, code: 'DENIED' } : { status: 401, code: 'UNAUTHORIZED' };
    await expect(client.putManifest(at, manifest, signal)).rejects.toThrow(/refused \(HTTP 403\); then: GET/);
  });

  test.each([
    { status: 400, code: 'MANIFEST_INVALID' },
    { status: 413, code: 'DIGEST_INVALID' },
  ])('that is refused with $status $code is not sent again', async (refusal) => {
    const { registry, client, at } = await setUp();
    registry.refuse = (line) => (line.startsWith('PUT') ? refusal : undefined);
    const requests = await registry.requestsOf(() =>
      expect(client.putManifest(at, manifest, signal)).rejects.toMatchObject(refusal),
    );
    expect(requests).toHaveLength(1);
  });

  test('without a tag is stored under its digest', async () => {
    const { registry, client, at } = await setUp();
    const { tag: _, ...untagged } = at;
    const digest = await client.putManifest(untagged, manifest, signal);
    expect(digest).toBe(digestOf(manifest.bytes));
    expect(registry.requests).toEqual([`PUT os/worker/manifests/${digest}`]);
  });

  test.each([
    [`${OCI_INDEX}; charset=utf-8`, OCI_INDEX],
    ['', OCI_INDEX],
  ])('that comes with the content type %j is of the type %j', async (header, mediaType) => {
    const host = await startScriptedRegistry((_request, response) => {
      response.writeHead(200, header === '' ? {} : { 'content-type': header }).end(manifest.bytes);
    });
    const client = createRegistryClient({ plainHttp: new Set([host]) });
    expect((await client.getManifest(parseReference(`${host}/os:1`), signal)).mediaType).toBe(mediaType);
  });

  test.each([
    [4 * 1024 * 1024, undefined],
    [4 * 1024 * 1024 + 1, ContentError],
  ])('of %i bytes is read up to the limit', async (size, refused) => {
    const host = await startScriptedRegistry((_request, response) => response.end(Buffer.alloc(size)));
    const client = createRegistryClient({ plainHttp: new Set([host]) });
    const read = client.getManifest(parseReference(`${host}/os:1`), signal);
    if (refused === undefined) expect((await read).bytes).toHaveLength(size);
    else await expect(read).rejects.toThrow(refused);
  });

  test.each([
    ['is that of its content', digestOf(manifest.bytes), undefined],
    ['is missing', undefined, undefined],
    ['is empty', '', undefined],
    [
      'is another one',
      digestOf('another'),
      `expected manifest ${digestOf('another')}, received content with`,
    ],
  ])('by tag, whose digest in the header %s, is read or refused', async (_what, digest, refused) => {
    const headers = digest === undefined ? {} : { 'docker-content-digest': digest };
    const host = await startScriptedRegistry((_request, response) =>
      response.writeHead(200, headers).end(manifest.bytes),
    );
    const client = createRegistryClient({ plainHttp: new Set([host]) });
    const read = client.getManifest(parseReference(`${host}/os:1`), signal);
    if (refused === undefined) expect((await read).digest).toBe(digestOf(manifest.bytes));
    else await expect(read).rejects.toThrow(refused);
  });

  test('by digest is refused where its content has another, whatever the header says', async () => {
    const expected = digestOf('another');
    const host = await startScriptedRegistry((_request, response) =>
      response.writeHead(200, { 'docker-content-digest': expected }).end(manifest.bytes),
    );
    const client = createRegistryClient({ plainHttp: new Set([host]) });
    const read = client.getManifest(parseReference(`${host}/os@${expected}`), signal);
    await expect(read).rejects.toThrow(ContentError);
  });

  test('that is gone already is deleted without an error', async () => {
    const { client, at } = await setUp();
    const digest = await client.putManifest(at, manifest, signal);
    expect(await client.deleteManifest(at, digest, signal)).toBe(true);
    expect(await client.deleteManifest(at, digest, signal)).toBe(false);
  });
});

describe('a list of referrers', () => {
  const subject = digestOf('subject');
  const page = (name: string) => JSON.stringify({ schemaVersion: 2, manifests: [], name });

  interface Page {
    readonly status?: number;
    readonly type?: string;
    readonly link?: string;
  }

  /** A registry whose first page is at the path of the API, and each next one at `?n=1`, `?n=2`. */
  async function listFrom(pages: readonly Page[]) {
    const asked: string[] = [];
    const host = await startScriptedRegistry((request, response) => {
      const url = new URL(request.url ?? '', 'http://registry');
      asked.push(`${url.pathname}${url.search}`);
      const { status = 200, type = OCI_INDEX, link } = pages[Number(url.searchParams.get('n') ?? 0)] ?? {};
      response.writeHead(status, { 'content-type': type, ...(link === undefined ? {} : { link }) });
      response.end(page(url.search));
    });
    const client = createRegistryClient({ plainHttp: new Set([host]) });
    const listed = client.getReferrers(parseReference(`${host}/os/worker`), subject, signal);
    return { asked, listed };
  }

  const path = `/v2/os/worker/referrers/${subject}`;

  test.each([
    ['an absolute path', `<${path}?n=1>; rel="next"`],
    ['a path from the page', `<./${subject}?n=1>;rel=next`],
    ['a query', '<?n=1>; rel="next"'],
    ['another host, which is not asked', `<https://elsewhere.example${path}?n=1>; rel="next"`],
    ['one of several links', `</first>; rel="first", <${path}?n=1>; rel="next"`],
  ])('goes on at the next page: %s', async (_what, link) => {
    const { asked, listed } = await listFrom([{ link }, {}]);
    expect((await listed)?.map(String)).toEqual([page(''), page('?n=1')]);
    expect(asked).toEqual([path, `${path}?n=1`]);
  });

  test('ends where the next link is none', async () => {
    const { asked, listed } = await listFrom([{ link: `<${path}?n=1>; rel="prev"` }]);
    expect(await listed).toHaveLength(1);
    expect(asked).toHaveLength(1);
  });

  test('that never ends is given up after 100 pages', async () => {
    const { asked, listed } = await listFrom([{ link: `<${path}?n=0>; rel="next"` }]);
    await expect(listed).rejects.toThrow('more than 100 pages of referrers');
    expect(asked).toHaveLength(100);
  });

  test.each([400, 404, 405, 406])('is none at a registry that answers %i', async (status) => {
    const { listed } = await listFrom([{ status, type: 'text/plain' }]);
    expect(await listed).toBeUndefined();
  });

  test('is none where a web page is in its place', async () => {
    const { listed } = await listFrom([{ type: 'text/html' }]);
    expect(await listed).toBeUndefined();
  });

  test.each([
    ['first', [{ status: 403 }]],
    ['second', [{ link: `<${path}?n=1>; rel="next"` }, { status: 404 }]],
  ])('whose %s page is refused is an error', async (_which, pages) => {
    const { listed } = await listFrom(pages);
    await expect(listed).rejects.toMatchObject({ name: 'RegistryError' });
  });
});

describe('the tags of a repository', () => {
  async function tagsFrom(answer: (search: string) => { status?: number; body?: unknown; link?: string }) {
    const host = await startScriptedRegistry((request, response) => {
      const url = new URL(request.url ?? '', 'http://registry');
      const { status = 200, body, link } = answer(url.search);
      response.writeHead(status, link === undefined ? {} : { link });
      response.end(typeof body === 'string' ? body : JSON.stringify(body));
    });
    const client = createRegistryClient({ plainHttp: new Set([host]) });
    return client.listTags(parseReference(`${host}/os/worker`), signal);
  }

  test('are those of all pages', async () => {
    const tags = await tagsFrom((search) =>
      search === ''
        ? {
            body: { name: 'os/worker', tags: ['a', 'b'] },
            link: '</v2/os/worker/tags/list?last=b>; rel="next"',
          }
        : { body: { name: 'os/worker', tags: ['c'] } },
    );
    expect(tags).toEqual(['a', 'b', 'c']);
  });

  test.each([
    ['does not exist', { status: 404, body: { errors: [{ code: 'NAME_UNKNOWN' }] } }],
    ['has none', { body: { name: 'os/worker', tags: null } }],
  ])('are none where it %s', async (_what, answer) => {
    expect(await tagsFrom(() => answer)).toEqual([]);
  });

  test.each(['<html>', { repositories: [] }])('are not read from another answer: %j', async (body) => {
    await expect(tagsFrom(() => ({ body }))).rejects.toThrow(ContentError);
  });

  test('that never end are given up after 100 pages', async () => {
    const again = { body: { tags: [] }, link: '</v2/os/worker/tags/list?n=1>; rel="next"' };
    await expect(tagsFrom(() => again)).rejects.toThrow('more than 100 pages of tags');
  });
});

describe('an upload', () => {
  async function upload(headers: Readonly<Record<string, string>>) {
    const puts: string[] = [];
    const host = await startScriptedRegistry((request, response) => {
      request.resume();
      if (request.method === 'PUT') puts.push(request.url ?? '');
      response.writeHead(request.method === 'PUT' ? 201 : 202, headers).end();
    });
    const client = createRegistryClient({ plainHttp: new Set([host]) });
    await client.putBlob(parseReference(`${host}/os`), Buffer.from('content'), signal);
    return puts;
  }
  const digest = encodeURIComponent(digestOf('content'));

  test.each([
    ['/v2/os/blobs/uploads/1', `/v2/os/blobs/uploads/1?digest=${digest}`],
    ['/v2/os/blobs/uploads/1?state=x', `/v2/os/blobs/uploads/1?state=x&digest=${digest}`],
  ])('at %s ends at %s', async (location, end) => {
    expect(await upload({ location })).toEqual([end]);
  });

  test('without a place to send it to is refused', async () => {
    await expect(upload({})).rejects.toThrow('without a Location header');
  });

  test('that is refused is named without its path, which is a secret of its own', async () => {
    const host = await startScriptedRegistry((request, response) => {
      request.resume();
      const location = '/v2/os/blobs/uploads/secret?state=secret';
      if (request.method === 'POST') response.writeHead(202, { location }).end();
      else response.writeHead(400).end();
    });
    const client = createRegistryClient({ plainHttp: new Set([host]) });
    const refused = client.putBlob(parseReference(`${host}/os`), Buffer.from('content'), signal);
    await expect(refused).rejects.toThrow(/^PUT [^ ]+\/os: HTTP 400/);
  });

  test('that is refused is not looked for', async () => {
    const { registry, client, at } = await setUp();
    registry.refuse = (line) =>
      line.startsWith('PUT') ? { status: 400, code: 'BLOB_UPLOAD_INVALID' } : undefined;
    await expect(client.putBlob(at, Buffer.from('a'), signal)).rejects.toMatchObject({ status: 400 });
    expect(registry.requests.filter((line) => line.startsWith('HEAD'))).toEqual([]);
  });

  test('whose end is not known, and whose blob is not there either, is an error', async () => {
    const { registry, client, at } = await setUp();
    registry.refuse = (line) =>
      line.startsWith('PUT') ? { status: 404, code: 'BLOB_UPLOAD_UNKNOWN' } : undefined;
    await expect(client.putBlob(at, Buffer.from('a'), signal)).rejects.toMatchObject({
      code: 'BLOB_UPLOAD_UNKNOWN',
    });
    expect(registry.requests.at(-1)).toMatch(/^HEAD /);
  });

  test.each([403, 404, 405])('that may not begin with a mount (%i) is begun without one', async (status) => {
    const { registry, client, at } = await setUp();
    registry.refuse = (line) => (line.includes('?mount=') ? { status } : undefined);
    const { digest } = await client.putBlob(at, Buffer.from('a'), signal);
    expect(await client.putBlob(at, Buffer.from('a'), signal)).toEqual({ digest, sent: false });
    expect(registry.requests.map((line) => line.split(' ')[0])).toEqual([
      ...['POST', 'HEAD', 'POST', 'PUT'],
      ...['POST', 'HEAD'],
    ]);
    registry.refuse = (line) => (line.startsWith('POST') ? { status } : undefined);
    await expect(client.putBlob(at, Buffer.from('b'), signal)).rejects.toMatchObject({ status });
  });

  test.each([
    ['of the request', 'uploads/1?state=a', '/v2/os/blobs/uploads/uploads/1?state=a'],
    ['of its directory', './1', '/v2/os/blobs/uploads/1'],
    ['above it', '../../1', '/v2/os/1'],
    ['of its query', '?state=a', '/v2/os/blobs/uploads/?state=a'],
    ['of the registry', '/1', '/1'],
    ['of the scheme', 'HOST/1', '/1'],
  ])('is sent where a Location relative to the path %s leads', async (_what, location, expected) => {
    const puts: string[] = [];
    const host = await startScriptedRegistry((request, response) => {
      request.resume();
      if (request.method === 'PUT') puts.push(request.url ?? '');
      const to = location.replace('HOST', `//${host}`);
      response.writeHead(request.method === 'POST' ? 202 : 201, { location: to }).end();
    });
    const client = createRegistryClient({ plainHttp: new Set([host]) });
    await client.putBlob(parseReference(`${host}/os`), Buffer.from('a'), signal);
    const separator = expected.includes('?') ? '&' : '?';
    expect(puts).toEqual([`${expected}${separator}digest=${encodeURIComponent(digestOf('a'))}`]);
  });
});

test('a mount that fails for another reason is an error', async () => {
  const { registry, client, at } = await setUp();
  registry.refuse = () => ({ status: 400, code: 'NAME_INVALID' });
  await expect(client.mountBlob(at, digestOf('a'), 'os/stock', signal)).rejects.toMatchObject({
    status: 400,
  });
});

test('an insecure registry without TLS is found out once, and then asked over plain HTTP', async () => {
  const { registry, at } = await setUp();
  const insecure = createRegistryClient({ insecure: new Set([at.registry]) });
  expect(await insecure.hasBlob(at, digestOf('a'), signal)).toBe(false);
  await insecure.putBlob(at, Buffer.from('a'), signal);
  expect(await insecure.hasBlob(at, digestOf('a'), signal)).toBe(true);
  expect(registry.requests.map((line) => line.split(' ')[0])).toEqual(['HEAD', 'POST', 'PUT', 'HEAD']);
});

test('a registry that is not insecure is asked over TLS alone', async () => {
  const { registry, at } = await setUp();
  const secure = createRegistryClient({});
  await expect(secure.hasBlob(at, digestOf('a'), deadline(10_000))).rejects.toThrow();
  expect(registry.requests).toEqual([]);
});

test('a blob is asked for from its beginning without a range', async () => {
  const { registry, client, at } = await setUp();
  const { digest } = await client.putBlob(at, Buffer.from('content'), signal);
  registry.refuse = () => ({ status: 404, code: 'BLOB_UNKNOWN' });
  const blob = { digest, size: 7, mediaType: '' };
  await expect(
    (async () => {
      for await (const chunk of client.readBlob(at, blob, signal)) expect(chunk).toBe('nothing');
    })(),
  ).rejects.toMatchObject({ status: 404 });
});
