import { writeFileSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { describe, expect, onTestFinished, test } from 'vitest';
import { digestOf } from '../digest.ts';
import { parseReference } from '../reference.ts';
import { type DockerRegistryOptions, startDockerRegistry } from '../testing/docker-registry.ts';
import { parseAuthFile } from './credentials.ts';
import { createRegistryClient } from './registry-client.ts';
import { ContentError, type RegistryError } from './registry-error.ts';
import type { RegistryAccess } from './transport.ts';

const signal = AbortSignal.timeout(60_000);
const mediaType = 'application/vnd.oci.image.manifest.v1+json';

async function registryWith(
  more: (dir: string) => Promise<Partial<DockerRegistryOptions>> = async () => ({}),
) {
  const dir = await mkdtemp(path.join(tmpdir(), 'registry-'));
  const registry = await startDockerRegistry({ dir, ...(await more(dir)) });
  onTestFinished(async () => {
    await registry.stop();
    await rm(dir, { recursive: true });
  });
  return { ...registry, dir };
}

async function read(stream: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

async function pushOne(access: RegistryAccess, host: string) {
  const client = createRegistryClient(access);
  const at = parseReference(`${host}/os/worker:1`);
  const config = Buffer.from('{}');
  const { digest } = await client.putBlob(at, config, signal);
  const manifest = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType,
      config: { mediaType: 'application/vnd.oci.image.config.v1+json', digest, size: 2 },
      layers: [],
    }),
  );
  return {
    client,
    at,
    blob: { digest, size: 2, mediaType: '' },
    manifest: await client.putManifest(at, { mediaType, bytes: manifest }, signal),
  };
}

describe('against docker-registry', () => {
  test('what is pushed is read back, by tag and by digest, and can be deleted', async () => {
    const { host } = await registryWith();
    const { client, at, blob, manifest } = await pushOne({ plainHttp: new Set([host]) }, host);
    expect((await client.getManifest(at, signal)).digest).toBe(manifest);
    expect((await client.getManifest({ ...at, digest: manifest }, signal)).mediaType).toBe(mediaType);
    expect(await read(client.readBlob(at, blob, signal))).toBe('{}');
    expect(await client.deleteManifest(at, manifest, signal)).toBe(true);
    expect(await client.deleteManifest(at, manifest, signal)).toBe(false);
    await expect(client.getManifest(at, signal)).rejects.toMatchObject({
      code: 'MANIFEST_UNKNOWN',
      temporary: false,
    });
  });

  test('a manifest is sent again while another client writes which blobs the repository has', async () => {
    const { host, dir } = await registryWith();
    const { client, at, blob } = await pushOne({ plainHttp: new Set([host]) }, host);
    const { bytes } = await client.getManifest(at, signal);
    const hex = blob.digest.slice('sha256:'.length);
    const links = path.join(dir, 'blobs/docker/registry/v2/repositories/os/worker/_layers/sha256');
    const link = path.join(links, hex, 'link');
    // The state in between: docker-registry truncates the file before it writes the digest.
    await writeFile(link, '');
    const statuses: number[] = [];
    const again = createRegistryClient({
      plainHttp: new Set([host]),
      onRequest: ({ status }) => {
        statuses.push(status);
        writeFileSync(link, blob.digest);
      },
    });
    await again.putManifest({ ...at, tag: '2' }, { mediaType, bytes }, signal);
    expect(statuses).toEqual([400, 201]);
  });

  test('a blob is mounted from another repository without being sent', async () => {
    const { host } = await registryWith();
    const { client, blob } = await pushOne({ plainHttp: new Set([host]) }, host);
    const other = parseReference(`${host}/os/infra:1`);
    expect(await client.hasBlob(other, blob.digest, signal)).toBe(false);
    expect(await client.mountBlob(other, blob.digest, 'os/worker', signal)).toBe(true);
    expect(await client.hasBlob(other, blob.digest, signal)).toBe(true);
  });

  test('a blob is sent once, and what is there already costs one request', async () => {
    const { host } = await registryWith();
    const requests: string[] = [];
    const client = createRegistryClient({
      plainHttp: new Set([host]),
      onRequest: ({ method, status }) => requests.push(`${method} ${status}`),
    });
    const at = parseReference(`${host}/os/worker`);
    const { digest, sent } = await client.putBlob(at, Buffer.from('content'), signal);
    expect(sent).toBe(true);
    expect(await read(client.readBlob(at, { digest, size: 7, mediaType: '' }, signal))).toBe('content');
    expect(await client.putBlob(at, Buffer.from('content'), signal)).toEqual({ digest, sent: false });
    expect(requests).toEqual(['POST 202', 'PUT 201', 'GET 200', 'POST 201']);
  });

  test('plain HTTP is spoken only where it is listed', async () => {
    const { host } = await registryWith();
    await expect(
      createRegistryClient({}).hasBlob(parseReference(`${host}/a`), digestOf(''), signal),
    ).rejects.toThrow();
  });

  test('TLS with a CA of its own, and not without', async () => {
    const { host, dir } = await registryWith(async (at) => {
      const key = path.join(at, 'key.pem');
      const certificate = path.join(at, 'cert.pem');
      await execa('openssl', [
        'req',
        '-x509',
        '-newkey',
        'ec',
        '-pkeyopt',
        'ec_paramgen_curve:P-256',
        '-nodes',
        '-keyout',
        key,
        '-out',
        certificate,
        '-days',
        '2',
        '-subj',
        '/CN=registry',
        '-addext',
        'subjectAltName=IP:127.0.0.1',
      ]);
      return { tls: { certificate, key } };
    });
    const ca = await readFile(path.join(dir, 'cert.pem'), 'utf8');
    const { client, at, manifest } = await pushOne({ caFor: () => ca }, host);
    expect((await client.getManifest(at, signal)).digest).toBe(manifest);
    await expect(createRegistryClient({}).getManifest(at, AbortSignal.timeout(20_000))).rejects.toThrow(
      /certificate/,
    );
  });
});

/** A registry that answers as a test says. */
async function scripted(answer: RequestListener) {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(
    () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  );
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe('against a registry that misbehaves', () => {
  const blob = { digest: digestOf('content'), size: 7, mediaType: '' };

  test.each<[string, string]>([
    ['another content', 'Content'],
    ['too few bytes', 'conte'],
    ['too many bytes', 'content!'],
  ])('%s is not taken for the blob', async (_name, body) => {
    const host = await scripted((_request, response) => response.end(body));
    const client = createRegistryClient({ plainHttp: new Set([host]) });
    await expect(read(client.readBlob(parseReference(`${host}/a`), blob, signal))).rejects.toThrow(
      ContentError,
    );
  });

  test('a manifest that is not the one its digest names is refused', async () => {
    const host = await scripted((_request, response) => response.end('{}'));
    const client = createRegistryClient({ plainHttp: new Set([host]) });
    await expect(client.getManifest(parseReference(`${host}/a@${blob.digest}`), signal)).rejects.toThrow(
      ContentError,
    );
  });

  test('what may pass is tried again, after the time the registry asks for', async () => {
    let count = 0;
    const host = await scripted((_request, response) => {
      count += 1;
      if (count < 3) response.writeHead(count === 1 ? 429 : 503, { 'retry-after': '0' }).end();
      else response.end('content');
    });
    const client = createRegistryClient({ plainHttp: new Set([host]) });
    expect(await read(client.readBlob(parseReference(`${host}/a`), blob, signal))).toBe('content');
    expect(count).toBe(3);
  });

  test('refused credentials are not tried again, and never shown', async () => {
    let count = 0;
    const host = await scripted((_request, response) => {
      count += 1;
      response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end();
    });
    const auths = parseAuthFile(
      JSON.stringify({ auths: { [host]: { auth: Buffer.from('user:hunter2').toString('base64') } } }),
    );
    const client = createRegistryClient({ plainHttp: new Set([host]), auths });
    const error = (await client
      .hasBlob(parseReference(`${host}/a`), blob.digest, signal)
      .catch((caught: unknown) => caught)) as RegistryError;
    expect(error).toMatchObject({ status: 401, temporary: false });
    expect(error.message).not.toContain('hunter2');
    expect(count).toBe(2);
  });

  test('a token is fetched as the challenge says and used for what follows', async () => {
    const seen: string[] = [];
    const host = await scripted((request, response) => {
      seen.push(`${request.url} ${request.headers.authorization ?? '-'}`);
      if (request.url?.startsWith('/token') === true) response.end(JSON.stringify({ token: 't0k' }));
      else if (request.headers.authorization !== 'Bearer t0k') {
        response
          .writeHead(401, {
            'www-authenticate': `Bearer realm="http://${host}/token",service="s",scope="repository:a:pull"`,
          })
          .end();
      } else response.end('content');
    });
    const client = createRegistryClient({ plainHttp: new Set([host]) });
    for (let index = 0; index < 2; index += 1)
      await read(client.readBlob(parseReference(`${host}/a`), blob, signal));
    expect(seen.map((line) => line.split('?')[0]?.split(' ')[0])).toEqual([
      `/v2/a/blobs/${blob.digest}`,
      '/token',
      `/v2/a/blobs/${blob.digest}`,
      `/v2/a/blobs/${blob.digest}`,
    ]);
  });

  test('a redirect to another host is followed without the credentials', async () => {
    let leaked: string | undefined;
    const storage = await scripted((request, response) => {
      leaked = request.headers.authorization;
      response.end('content');
    });
    const host = await scripted((request, response) => {
      if (request.headers.authorization === undefined)
        response.writeHead(401, { 'www-authenticate': 'Basic' }).end();
      else response.writeHead(307, { location: `http://${storage}/blob` }).end();
    });
    const auths = new Map([[host, { username: 'u', password: 'p' }]]);
    const client = createRegistryClient({ plainHttp: new Set([host, storage]), auths });
    expect(await read(client.readBlob(parseReference(`${host}/a`), blob, signal))).toBe('content');
    expect(leaked).toBeUndefined();
  });
});

test('an auth file that is none says what was expected and shows nothing of itself', async () => {
  const file = path.join(await mkdtemp(path.join(tmpdir(), 'auth-')), 'auth.json');
  onTestFinished(() => rm(path.dirname(file), { recursive: true }));
  await writeFile(file, 'hunter2');
  const text = await readFile(file, 'utf8');
  expect(() => parseAuthFile(text)).toThrow(/^registry credentials: not JSON; expected/);
});
