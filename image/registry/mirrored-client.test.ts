import { beforeEach, describe, expect, test } from 'vitest';
import { parseRegistriesConf } from '../../oci/registries-conf.ts';
import { deadline } from '../../test/fixtures/patience.ts';
import { pushBaseImage } from '../../test/fixtures/registry/base-image.ts';
import { MemoryRegistry } from '../../test/fixtures/registry/memory-registry.ts';
import { noPause } from '../../test/fixtures/registry/pauses.ts';
import { startScriptedRegistry } from '../../test/fixtures/registry/scripted-registry.ts';
import { describeImage } from '../append.ts';
import { digestOf } from '../digest.ts';
import { parseReference } from '../reference.ts';
import { createMirroredClient } from './mirrored-client.ts';
import { createRegistryClient } from './registry-client.ts';
import { DigestMismatch, RegistryError } from './registry-error.ts';

const signal = deadline(60_000);
const mediaType = 'application/vnd.oci.image.manifest.v1+json';
let mirror: MemoryRegistry;

beforeEach(async () => {
  mirror = await MemoryRegistry.start();
});

/** A registry that notes what it is asked and has nothing. */
async function emptyRegistry(status = 404) {
  const asked: string[] = [];
  const host = await startScriptedRegistry((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    response.writeHead(status, { 'retry-after': '0' }).end();
  });
  return { host, asked };
}

function mirrored(
  source: string,
  options: { more?: string; mirrors?: string[]; own?: string; pause?: typeof noPause } = {},
) {
  const { more = '', mirrors = [`${mirror.host}/copy`], own, pause = noPause } = options;
  const tables = mirrors.map(
    (location) => `[[registry.mirror]]\nlocation = "${location}"\ninsecure = true\n`,
  );
  const text = `[[registry]]\nlocation = "${source}"\ninsecure = true\n${more}\n${tables.join('')}`;
  return createMirroredClient(
    { pause },
    {
      conf: parseRegistriesConf([{ name: 'registries.conf', text }]),
      ...(own === undefined ? {} : { own: parseReference(own) }),
    },
  );
}

const direct = () => createRegistryClient({ plainHttp: new Set([mirror.host]) });

describe('an image that only a mirror has', () => {
  test('is read from it, and its registry is not asked', async () => {
    const { host, asked } = await emptyRegistry();
    const digest = await pushBaseImage(direct(), `${mirror.host}/copy/os/stock:1`, signal);
    const at = parseReference(`${host}/os/stock@${digest}`);
    const image = await describeImage(mirrored(host), at, 'amd64', signal);
    expect(image.config.config?.Labels).toEqual({ kept: 'yes' });
    expect(asked).toEqual([]);
  });

  test('is read although its registry is blocked', async () => {
    const { host, asked } = await emptyRegistry();
    await pushBaseImage(direct(), `${mirror.host}/copy/os/stock:1`, signal);
    const client = mirrored(host, { more: 'blocked = true' });
    await expect(client.getManifest(parseReference(`${host}/os/stock:1`), signal)).resolves.toMatchObject({
      mediaType,
    });
    expect(asked).toEqual([]);
  });

  test('of tags alone is read with what it is made of', async () => {
    const { host } = await emptyRegistry();
    await pushBaseImage(direct(), `${mirror.host}/copy/os/tagged:1`, signal);
    const text = `[[registry]]\nlocation = "${host}"\ninsecure = true\n[[registry.mirror]]\nlocation = "${mirror.host}/copy"\ninsecure = true\npull-from-mirror = "tag-only"`;
    const client = createMirroredClient({}, { conf: parseRegistriesConf([{ name: 'c', text }]) });
    const image = await describeImage(client, parseReference(`${host}/os/tagged:1`), 'amd64', signal);
    expect(image.config.config?.Labels).toEqual({ kept: 'yes' });
  });
});

test.each([404, 500, 401, 403])('a mirror that answers %i is passed over', async (status) => {
  const broken = await emptyRegistry(status);
  const digest = await pushBaseImage(direct(), `${mirror.host}/os/stock:1`, signal);
  const client = mirrored(mirror.host, { mirrors: [broken.host] });
  const at = parseReference(`${mirror.host}/os/stock@${digest}`);
  expect((await describeImage(client, at, 'amd64', signal)).digest).toBe(digest);
  expect(broken.asked.length).toBeGreaterThan(0);
});

test('a mirror that has another image under the digest is passed over', async () => {
  const liar = await startScriptedRegistry((_request, response) => response.end('{}'));
  const digest = await pushBaseImage(direct(), `${mirror.host}/os/stock:1`, signal);
  const client = mirrored(mirror.host, { mirrors: [liar] });
  const manifest = await client.getManifest(parseReference(`${mirror.host}/os/stock@${digest}`), signal);
  expect(digestOf(manifest.bytes)).toBe(digest);
});

test('an image that is nowhere is refused with what each place said', async () => {
  const [first, second] = [await emptyRegistry(404), await emptyRegistry(403)];
  const client = mirrored(first.host, { mirrors: [second.host, `${mirror.host}/none`] });
  const error = await client
    .getManifest(parseReference(`${first.host}/os:1`), signal)
    .catch((e: unknown) => e);
  expect(error).toBeInstanceOf(RegistryError);
  expect(error).toMatchObject({ status: 404, temporary: false });
  expect(String(error)).toMatch(
    new RegExp(`GET ${first.host}/os manifests/1: HTTP 404; nor was it elsewhere`),
  );
  expect(String(error)).toContain(`[${second.host}/os:1: GET ${second.host}/os manifests/1: HTTP 403]`);
  expect(String(error)).toContain(`[${mirror.host}/none/os:1: `);
});

test('an image that a mirror may have when it is up again is worth another try', async () => {
  const [registry, down] = [await emptyRegistry(404), await emptyRegistry(503)];
  const client = mirrored(registry.host, { mirrors: [down.host] });
  await expect(client.getManifest(parseReference(`${registry.host}/os:1`), signal)).rejects.toMatchObject({
    status: 404,
    temporary: true,
  });
});

test.each([
  ['wrong content at the registry, and a mirror that is away', 'wrong', 503],
  ['wrong content at a mirror, and none at the registry', 404, 'wrong'],
] as const)('%s is worth another try', async (_, registryAnswer, mirrorAnswer) => {
  const place = async (answer: number | 'wrong') =>
    answer === 'wrong'
      ? await startScriptedRegistry((_request, response) => response.end('{}'))
      : (await emptyRegistry(answer)).host;
  const [registry, other] = [await place(registryAnswer), await place(mirrorAnswer)];
  const client = mirrored(registry, { mirrors: [other] });
  const digest = `sha256:${'a'.repeat(64)}`;
  await expect(client.getManifest(parseReference(`${registry}/os@${digest}`), signal)).rejects.toMatchObject({
    name: 'RegistryError',
    temporary: true,
  });
});

test('wrong content everywhere is not the registry that is away', async () => {
  const liar = await startScriptedRegistry((_request, response) => response.end('{}'));
  const other = await startScriptedRegistry((_request, response) => response.end('{}'));
  const client = mirrored(liar, { mirrors: [other] });
  const digest = `sha256:${'a'.repeat(64)}`;
  await expect(client.getManifest(parseReference(`${liar}/os@${digest}`), signal)).rejects.toMatchObject({
    name: 'DigestMismatch',
  });
});

test('what no place has as it must be, with bytes that nobody says are others, is no wrong answer', async () => {
  const tooLarge = Buffer.alloc(4 * 1024 * 1024 + 1, ' ');
  const place = () => startScriptedRegistry((_request, response) => response.end(tooLarge));
  const [registry, other] = [await place(), await place()];
  const client = mirrored(registry, { mirrors: [other] });
  await expect(client.getManifest(parseReference(`${registry}/os:1`), signal)).rejects.toMatchObject({
    name: 'ContentError',
    message: expect.stringMatching(/larger than the limit.*nor was it elsewhere/),
  });
});

test('a blocked image is refused before anybody is asked', async () => {
  const { host, asked } = await emptyRegistry();
  const client = mirrored(host, { more: 'blocked = true', mirrors: [] });
  await expect(client.getManifest(parseReference(`${host}/os:1`), signal)).rejects.toThrow(
    `${host}/os:1: registries.conf blocks ${host}`,
  );
  expect(asked).toEqual([]);
});

test('what is pushed goes to the registry, and is read from there', async () => {
  const { host, asked } = await emptyRegistry();
  const own = `${mirror.host}/os/pushed:1`;
  const client = mirrored(mirror.host, { mirrors: [host], own });
  const digest = await pushBaseImage(client, own, signal);
  expect((await client.getManifest(parseReference(own), signal)).digest).toBe(digest);
  expect(asked).toEqual([]);
});

describe('a tag that stands for a digest', () => {
  const hex = 'a'.repeat(64);
  test.each([
    [`sha256-${hex}`, true],
    [`sha256-${hex}.sig`, true],
    [`sha256-${hex.slice(1)}`, false],
    ['1', false],
  ])('%s is read from a mirror for digests: %s', async (tag, asksMirror) => {
    const [registry, digests] = [await emptyRegistry(), await emptyRegistry()];
    const text = `[[registry]]\nlocation = "${registry.host}"\ninsecure = true\n[[registry.mirror]]\nlocation = "${digests.host}"\ninsecure = true\npull-from-mirror = "digest-only"`;
    const client = createMirroredClient({}, { conf: parseRegistriesConf([{ name: 'c', text }]) });
    await expect(
      client.getManifest({ registry: registry.host, repository: 'os', tag }, signal),
    ).rejects.toThrow();
    // By its name, not by the digest: what is asked for is the list, or the signature.
    expect(digests.asked).toEqual(asksMirror ? [`GET /v2/os/manifests/${tag}`] : []);
    expect(registry.asked).toEqual([`GET /v2/os/manifests/${tag}`]);
  });
});

test('what an image is made of is asked for first where its manifest was, and of no place twice', async () => {
  const [registry, first] = [await emptyRegistry(), await emptyRegistry()];
  const digest = await pushBaseImage(direct(), `${mirror.host}/copy/os/stock:1`, signal);
  const client = mirrored(registry.host, { mirrors: [first.host, `${mirror.host}/copy`] });
  const at = parseReference(`${registry.host}/os/stock@${digest}`);
  await client.getManifest(at, signal);
  const before = mirror.requests.length;
  const { asked } = first;
  expect(asked.splice(0)).toEqual([`GET /v2/os/stock/manifests/${digest}`]);
  const blob = { digest: digestOf('gone'), size: 4, mediaType: '' };
  await expect(collect(client.readBlob(at, blob, signal))).rejects.toMatchObject({ status: 404 });
  const request = `GET /v2/os/stock/blobs/${blob.digest}`;
  expect(mirror.requests.slice(before)).toEqual([`GET copy/os/stock/blobs/${blob.digest}`]);
  expect([asked, registry.asked]).toEqual([[request], [request]]);
});

test('a large blob with wrong bytes is read from another place the next time, also by another client', async () => {
  const right = Buffer.alloc(2_000_000, 'a');
  const asked: string[] = [];
  const serving = (name: string, content: Buffer) =>
    startScriptedRegistry((_request, response) => {
      asked.push(name);
      response.writeHead(200, { 'content-length': content.length }).end(content);
    });
  // The first of it is given before the last of it shows that it is wrong.
  const wrong = await serving('mirror', Buffer.concat([right.subarray(1), Buffer.from('b')]));
  const host = await serving('registry', right);
  const blob = { digest: digestOf(right), size: right.length, mediaType: '' };
  const readBlob = () =>
    collect(mirrored(host, { mirrors: [wrong] }).readBlob(parseReference(`${host}/os`), blob, signal));
  await expect(readBlob()).rejects.toThrow(DigestMismatch);
  expect((await readBlob()).equals(right)).toBe(true);
  expect(asked).toEqual(['mirror', 'registry']);
});

test('once the signal is aborted no other place is asked', async () => {
  const registry = await emptyRegistry();
  const stop = new AbortController();
  const aborting = await startScriptedRegistry((_request, response) => {
    stop.abort(new Error('enough'));
    response.writeHead(404).end();
  });
  const client = mirrored(registry.host, { mirrors: [aborting] });
  await expect(client.getManifest(parseReference(`${registry.host}/os:1`), stop.signal)).rejects.toThrow();
  expect(registry.asked).toEqual([]);
});

test('what no registry is to blame for is thrown as it is, and no other place is asked', async () => {
  const [registry, down] = [await emptyRegistry(), await emptyRegistry(503)];
  const defect = new RangeError('a defect of the caller');
  const client = mirrored(registry.host, { mirrors: [down.host], pause: () => Promise.reject(defect) });
  await expect(client.getManifest(parseReference(`${registry.host}/os:1`), signal)).rejects.toBe(defect);
  expect(registry.asked).toEqual([]);
});

test('a blob that nobody reads on lets go of its connection', async () => {
  const closed = Promise.withResolvers<void>();
  const size = 64 * 1024 * 1024;
  const host = await startScriptedRegistry((_request, response) => {
    response.once('close', closed.resolve);
    response.writeHead(200, { 'content-length': size });
    for (let sent = 0; sent < 4; sent += 1) response.write(Buffer.alloc(64 * 1024));
  });
  const client = mirrored(host, { mirrors: [] });
  const blob = { digest: digestOf('endless'), size, mediaType: '' };
  for await (const _ of client.readBlob(parseReference(`${host}/os`), blob, signal)) break;
  await closed.promise;
});

test('what is written goes to the repository that it names, whatever mirrors it has', async () => {
  const { host, asked } = await emptyRegistry();
  const client = mirrored(mirror.host, { mirrors: [host] });
  const at = parseReference(`${mirror.host}/os/pushed`);
  const content = Buffer.from('content');
  const { digest } = await client.putBlob(at, content, signal);
  await client.putBlobStream(
    { ...at, repository: 'os/streamed' },
    { digest, size: 7 },
    chunksOf(content),
    signal,
  );
  expect(await client.mountBlob({ ...at, repository: 'os/other' }, digest, 'os/pushed', signal)).toBe(true);
  const [list, referrer] = ['{"manifests":[]}', '{}'].map((text) => ({
    mediaType,
    bytes: Buffer.from(text),
  }));
  if (list === undefined || referrer === undefined) throw new Error('expected two manifests');
  const pushed = await client.putManifest({ ...at, tag: '1' }, list, signal);
  expect((await client.putReferrer(at, referrer, signal)).digest).toBe(digestOf('{}'));
  expect(await client.deleteManifest(at, pushed, signal)).toBe(true);
  expect([...mirror.repository('os/pushed').manifests.keys()]).toEqual([digestOf('{}')]);
  expect([...mirror.repository('os/other').blobs.keys()]).toEqual([digest]);
  expect(asked).toEqual([]);
});

async function* chunksOf(...chunks: readonly Uint8Array[]) {
  yield* chunks;
}

async function collect(bytes: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of bytes) chunks.push(chunk);
  return Buffer.concat(chunks);
}
