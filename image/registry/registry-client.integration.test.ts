/** The client against docker-registry itself: uploads, mounts, TLS, authentication. */
import { writeFileSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { describe, expect, onTestFinished, test } from 'vitest';
import { deadline } from '../../test/fixtures/patience.ts';
import { startScriptedRegistry } from '../../test/fixtures/registry/scripted-registry.ts';
import { type DockerRegistryOptions, startDockerRegistry } from '../../workshop/sandbox/docker-registry.ts';
import { digestOf } from '../digest.ts';
import { parseReference } from '../reference.ts';
import type { RegistryAccess } from './connection.ts';
import { createRegistryClient } from './registry-client.ts';
import { ContentError } from './registry-error.ts';

const signal = deadline(300_000);
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
    await client.putManifest({ ...at, tag: '2' }, await client.getManifest(at, signal), signal);
    expect(await client.listTags(at, signal)).toEqual(['1', '2']);
    expect(await client.deleteManifest(at, manifest, signal)).toBe(true);
    // All tags of the digest are gone with it, not only the one that it was found by.
    expect(await client.listTags(at, signal)).toEqual([]);
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

  test('TLS with a CA of its own, and not without, but for an insecure registry', async () => {
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
    await expect(createRegistryClient({}).getManifest(at, deadline(20_000))).rejects.toThrow(/certificate/);
    const insecure = createRegistryClient({ insecure: new Set([host]) });
    expect((await insecure.getManifest(at, signal)).digest).toBe(manifest);
  });
});

test.each([
  ['its digest', (host: string) => `${host}/os@${digestOf('content')}`],
  ['the registry', (host: string) => `${host}/os:1`],
])('a manifest that is not the one that %s names is refused', async (_name, nameAt) => {
  const host = await startScriptedRegistry((_request, response) => {
    response.writeHead(200, { 'docker-content-digest': digestOf('content') }).end('{}');
  });
  const client = createRegistryClient({ plainHttp: new Set([host]) });
  await expect(client.getManifest(parseReference(nameAt(host)), signal)).rejects.toThrow(ContentError);
});
