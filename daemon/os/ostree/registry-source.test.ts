import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { arch, tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DigestedPullspec, parseDigestedPullspec } from '../../../api/references.ts';
import { digestOf } from '../../../image/digest.ts';
import { goArchitecture } from '../../../image/manifest.ts';
import { parseReference } from '../../../image/reference.ts';
import { createRegistryClient } from '../../../image/registry/registry-client.ts';
import { signImage } from '../../../image/signature/sign-image.ts';
import { deadline } from '../../../test/fixtures/patience.ts';
import { pushBaseImage } from '../../../test/fixtures/registry/base-image.ts';
import { MemoryRegistry } from '../../../test/fixtures/registry/memory-registry.ts';
import { newSigningKey } from '../../../test/fixtures/registry/registry-with-image.ts';
import { PrepareRefused } from '../../records/current.ts';
import { nodeRegistriesConf, registryCertificates, registrySource } from './registry-source.ts';

describe('registryCertificates', () => {
  let root: string;

  beforeAll(async () => {
    root = await mkdtemp(path.join(tmpdir(), 'shale-certs-'));
    for (const [name, text] of [
      ['etc/containers/certs.d/registry.test:5000/b.crt', 'B'],
      ['etc/containers/certs.d/registry.test:5000/a.crt', 'A'],
      ['etc/containers/certs.d/registry.test:5000/client.key', 'KEY'],
      ['etc/docker/certs.d/registry.test:5000/ca.crt', 'C'],
    ] as const) {
      await mkdir(path.dirname(path.join(root, name)), { recursive: true });
      await writeFile(path.join(root, name), text);
    }
  });
  afterAll(() => rm(root, { recursive: true }));

  it('are every CA of both directories, and no key', async () => {
    expect(await registryCertificates(root, 'registry.test:5000')).toEqual(['A', 'B', 'C']);
    expect(await registryCertificates(root, 'registry.test')).toEqual([]);
  });

  it.each(['..', 'a/../../b', ''])('refuses %j', async (registry) => {
    await expect(registryCertificates(root, registry)).rejects.toThrow('expected a registry');
  });
});

const signal = deadline(60_000);
const own = goArchitecture(arch());

describe('registrySource', () => {
  /** @returns a node without any settings, and a registry that it reaches. */
  async function setUp() {
    const registry = await MemoryRegistry.start();
    const plainHttp = new Set([registry.host]);
    const client = createRegistryClient({ plainHttp });
    const name = `${registry.host}/os/worker`;
    const push = async (architecture: string) =>
      parseDigestedPullspec(`${name}@${await pushBaseImage(client, `${name}:1`, signal, architecture)}`);
    const source = registrySource({ root: '/nowhere', plainHttp });
    return { registry, client, name, push, source };
  }

  it('opens an image of the node’s architecture, whose layers tell how far they are', async () => {
    const { push, source } = await setUp();
    const { labels, layers } = await source.open(await push(own), signal);
    expect(labels).toEqual({ kept: 'yes' });
    const counted: number[] = [];
    const paths: string[] = [];
    for (const layer of layers)
      for await (const { path: name } of layer.read((bytes) => counted.push(bytes), signal)) paths.push(name);
    expect(paths.at(-1)).toBe('usr/lib/os-release');
    expect(counted.reduce((sum, bytes) => sum + bytes, 0)).toBe(layers[0]?.size);
  });

  it('refuses an image for another architecture', async () => {
    const { push, source } = await setUp();
    const image = await push('s390x');
    await expect(source.open(image, signal)).rejects.toThrow(PrepareRefused);
    await expect(source.open(image, signal)).rejects.toThrow(
      `${image} is for linux/s390x, and this node is linux/${own}: use a base image for both`,
    );
  });

  it('refuses an image whose layers and diffIDs differ in number', async () => {
    const { registry, client, push, name, source } = await setUp();
    const { digest } = parseReference(await push(own));
    const { manifests, blobs } = registry.repository('os/worker');
    const manifest = JSON.parse(String(manifests.get(digest ?? '')?.bytes)) as {
      config: { digest: string; size: number };
    };
    const config = JSON.parse(String(blobs.get(manifest.config.digest))) as {
      rootfs: { diff_ids: string[] };
    };
    config.rootfs.diff_ids.push(digestOf('another'));
    const bytes = Buffer.from(JSON.stringify(config));
    const sent = await client.putBlob(parseReference(name), bytes, signal);
    const changed = { ...manifest, config: { ...manifest.config, digest: sent.digest, size: bytes.length } };
    const mediaType = 'application/vnd.oci.image.manifest.v1+json';
    const raw = { mediaType, bytes: Buffer.from(JSON.stringify(changed)) };
    const odd = await client.putManifest(parseReference(`${name}:odd`), raw, signal);
    await expect(source.open(parseDigestedPullspec(`${name}@${odd}`), signal)).rejects.toThrow(
      '1 layers and 2 diffIDs',
    );
  });

  it('knows who signed an image, by digest alone', async () => {
    const { client, push, name, source } = await setUp();
    const image = await push(own);
    const { digest, ...at } = parseReference(image);
    const key = newSigningKey();
    if (digest !== undefined) await signImage(client, at, { digest, key }, signal);
    expect(await source.isSignedBy?.(image, key.publicKey, signal)).toBe(true);
    expect(await source.isSignedBy?.(image, newSigningKey().publicKey, signal)).toBe(false);
    await expect(source.isSignedBy?.(`${name}:1` as DigestedPullspec, key.publicKey, signal)).rejects.toThrow(
      'expected an image by digest',
    );
  });
});

describe('readRegistriesConf', () => {
  it('reads the main file, then the others by name, and nothing else', async () => {
    const root = await mkdtemp(path.join(tmpdir(), 'shale-registries-'));
    try {
      expect(await nodeRegistriesConf(root)).toEqual(new Map());
      const directory = path.join(root, 'etc/containers/registries.conf.d');
      await mkdir(directory, { recursive: true });
      const rule = (location: string) => `[[registry]]\nprefix = "r.io"\nlocation = "${location}"\n`;
      const locations = async () =>
        [...(await nodeRegistriesConf(root)).values()].map(({ location }) => location);
      await writeFile(path.join(root, 'etc/containers/registries.conf'), rule('main'));
      expect(await locations()).toEqual(['main']);
      await writeFile(path.join(directory, '20-b.conf'), rule('b'));
      await writeFile(path.join(directory, '10-a.conf'), rule('a'));
      await writeFile(path.join(directory, '30.conf.bak'), rule('never'));
      expect(await locations()).toEqual(['b']);
    } finally {
      await rm(root, { recursive: true });
    }
  });
});
