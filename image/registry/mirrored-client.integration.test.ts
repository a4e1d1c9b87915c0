import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { deadline } from '../../test/fixtures/patience.ts';
import { pushBaseImage } from '../../test/fixtures/registry/base-image.ts';
import { startScriptedRegistry } from '../../test/fixtures/registry/scripted-registry.ts';
import { type DockerRegistry, startDockerRegistry } from '../../workshop/sandbox/docker-registry.ts';
import { describeImage } from '../append.ts';
import { digestOf } from '../digest.ts';
import { parseReference } from '../reference.ts';
import { createMirroredClient } from './mirrored-client.ts';
import { parseRegistriesConf } from './registries-conf.ts';
import { createRegistryClient } from './registry-client.ts';
import { RegistryError } from './registry-error.ts';

const signal = deadline(300_000);
const mediaType = 'application/vnd.oci.image.manifest.v1+json';
let dir: string;
let mirror: DockerRegistry;

beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'shale-mirror-'));
  await mkdir(path.join(dir, 'mirror'));
  mirror = await startDockerRegistry({ dir: path.join(dir, 'mirror') });
});
afterAll(async () => {
  await mirror.stop();
  await rm(dir, { recursive: true });
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

function mirrored(source: string, options: { more?: string; mirrors?: string[]; own?: string } = {}) {
  const { more = '', mirrors = [`${mirror.host}/copy`], own } = options;
  const tables = mirrors.map(
    (location) => `[[registry.mirror]]\nlocation = "${location}"\ninsecure = true\n`,
  );
  const text = `[[registry]]\nlocation = "${source}"\ninsecure = true\n${more}\n${tables.join('')}`;
  return createMirroredClient(
    {},
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
