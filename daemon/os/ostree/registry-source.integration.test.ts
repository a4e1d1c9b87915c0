/** Reads images over TLS from registries on loopback: trust, mirrors and their CAs. */
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { arch, tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseDigestedPullspec } from '../../../api/references.ts';
import { describeImage } from '../../../image/append.ts';
import { writeLayer } from '../../../image/layer/write-layer.ts';
import { pushAppended } from '../../../image/push-image.ts';
import { parseReference } from '../../../image/reference.ts';
import { createRegistryClient, type RegistryClient } from '../../../image/registry/registry-client.ts';
import { deadline } from '../../../test/fixtures/patience.ts';
import { pushBaseImage } from '../../../test/fixtures/registry/base-image.ts';
import { type DockerRegistry, startDockerRegistry } from '../../../workshop/sandbox/docker-registry.ts';
import { registrySource } from './registry-source.ts';

const signal = deadline(300_000);
const architecture = arch() === 'x64' ? 'amd64' : arch();
let dir: string;
let registry: DockerRegistry;
let ca: string;

beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'shale-registry-source-'));
  const certificate = path.join(dir, 'tls.crt');
  const key = path.join(dir, 'tls.key');
  await execa('openssl', [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'],
    ...[
      '-keyout',
      key,
      '-out',
      certificate,
      '-subj',
      '/CN=registry',
      '-addext',
      'subjectAltName=IP:127.0.0.1',
    ],
  ]);
  await chmod(key, 0o600);
  ca = await readFile(certificate, 'utf8');
  await mkdir(path.join(dir, 'registry'));
  registry = await startDockerRegistry({ dir: path.join(dir, 'registry'), tls: { certificate, key } });
});
afterAll(async () => {
  await registry.stop();
  await rm(dir, { recursive: true });
});

const pusher = (): RegistryClient => createRegistryClient({ caFor: () => ca });

/** @returns an image of a base with one layer on it. */
async function pushImage(name: string) {
  const base = `${registry.host}/os/stock:1`;
  await pushBaseImage(pusher(), base, signal);
  const content = Buffer.from('server time.example.org');
  const layer = await writeLayer([
    { type: 'file', path: '/etc/chrony.conf', mode: 0o644, uid: 0, gid: 0, content },
  ]);
  const from = parseReference(base);
  const { digest } = await pushAppended(
    pusher(),
    {
      base: from,
      description: await describeImage(pusher(), from, architecture, signal),
      target: parseReference(`${registry.host}/os/${name}:1`),
      layer,
      options: { labels: { a: 'b' }, created: '2026-01-01T00:00:00Z', comment: 'test' },
    },
    signal,
  );
  return parseDigestedPullspec(`${registry.host}/os/${name}@${digest}`);
}

async function rootWithCertificate(directory: string): Promise<string> {
  const root = await mkdtemp(path.join(dir, 'root-'));
  const place = path.join(root, directory, registry.host);
  await mkdir(place, { recursive: true });
  await writeFile(path.join(place, 'ca.crt'), ca);
  return root;
}

describe('an image of a registry', () => {
  test.each(['etc/containers/certs.d', 'etc/docker/certs.d'])(
    'is read with the CA of %s',
    async (directory) => {
      const image = await pushImage('worker');
      const root = await rootWithCertificate(directory);
      const opened = await registrySource({ root, plainHttp: new Set() }).open(image, signal);
      expect(opened.labels).toEqual({ kept: 'yes', a: 'b' });
      const files: Record<string, string> = {};
      let bytes = 0;
      for (const layer of opened.layers) {
        const count = (more: number) => {
          bytes += more;
        };
        for await (const item of layer.read(count, signal)) {
          if (item.type !== 'file') continue;
          const content = await buffer(Readable.from(item.content as AsyncIterable<Uint8Array>));
          files[item.path] = content.toString();
        }
      }
      expect(files).toEqual({
        'usr/lib/os-release': 'ID=stock',
        'etc/chrony.conf': 'server time.example.org',
      });
      expect(bytes).toBe(opened.layers.reduce((sum, { size }) => sum + size, 0));
    },
  );

  test('is refused while the node does not trust its registry, and read as soon as it does', async () => {
    const image = await pushImage('trusted');
    const root = await mkdtemp(path.join(dir, 'root-'));
    const source = registrySource({ root, plainHttp: new Set() });
    await expect(source.open(image, deadline(30_000))).rejects.toThrow();
    const place = path.join(root, 'etc/containers/certs.d', registry.host);
    await mkdir(place, { recursive: true });
    await writeFile(path.join(place, 'ca.crt'), ca);
    await expect(source.open(image, signal)).resolves.toMatchObject({ labels: { a: 'b' } });
  });

  test('is read from the mirror that the node has for its registry, with the CA of the mirror', async () => {
    const image = await pushImage('mirrored');
    const root = await rootWithCertificate('etc/containers/certs.d');
    const elsewhere = parseDigestedPullspec(image.replace(`${registry.host}/os`, 'r.invalid/stock'));
    const source = registrySource({ root, plainHttp: new Set() });
    await mkdir(path.join(root, 'etc/containers/registries.conf.d'), { recursive: true });
    await writeFile(
      path.join(root, 'etc/containers/registries.conf'),
      '[[registry]]\nlocation = "r.invalid"\nblocked = true\n',
    );
    await expect(source.open(elsewhere, signal)).rejects.toThrow('registries.conf blocks r.invalid');
    await writeFile(
      path.join(root, 'etc/containers/registries.conf.d/50-mirror.conf'),
      `[[registry]]\nlocation = "r.invalid"\nblocked = true\n[[registry.mirror]]\nlocation = "${registry.host}"\n`,
    );
    await expect(source.open(elsewhere, signal)).rejects.toThrow(/r\.invalid/);
    await writeFile(
      path.join(root, 'etc/containers/registries.conf.d/60-mirror.conf'),
      `[[registry]]\nprefix = "r.invalid/stock"\nlocation = "${registry.host}/os"\n`,
    );
    const opened = await source.open(elsewhere, signal);
    for (const layer of opened.layers) {
      for await (const item of layer.read(() => undefined, signal)) expect(item.path).not.toBe('');
    }
    expect(opened.labels).toEqual({ kept: 'yes', a: 'b' });
  });

  test('that is not there is an error that names it', async () => {
    await pushImage('known');
    const root = await rootWithCertificate('etc/containers/certs.d');
    const missing = parseDigestedPullspec(`${registry.host}/os/known@sha256:${'0'.repeat(64)}`);
    await expect(registrySource({ root, plainHttp: new Set() }).open(missing, signal)).rejects.toThrow(
      'os/known',
    );
  });
});
