import { randomBytes } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { pack } from 'tar-stream';
import type { MachineConfig } from '../../api/machine-config.ts';
import { digestOf } from '../../image/digest.ts';
import { parseReference } from '../../image/reference.ts';
import type { RegistryClient } from '../../image/registry/registry-client.ts';

/** What every peer of a benchmark makes the same image of. */

const FILE_BYTES = 1024;
const LAYERS = 4;

/** @returns the files of a config: path to content, another one for each revision. */
export function configFiles(count: number, revision: number): ReadonlyMap<string, string> {
  const names = Array.from(
    { length: count },
    (_, index) => `/etc/example.d/${String(index).padStart(4, '0')}.conf`,
  );
  return new Map(
    names.map((name, index) => [
      name,
      `# ${index} ${revision}\n`.padEnd(FILE_BYTES, 'server ntp.example.org iburst\n').slice(0, FILE_BYTES),
    ]),
  );
}

/** @returns these files as a rendered config. */
export function renderedConfig(files: ReadonlyMap<string, string>, revision: number): MachineConfig {
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: {
      name: `rendered-worker-${revision}`,
      labels: { 'machineconfiguration.openshift.io/role': 'worker' },
    },
    spec: {
      config: {
        ignition: { version: '3.4.0' },
        storage: {
          files: [...files].map(([name, content]) => ({
            path: name,
            mode: 0o644,
            overwrite: true,
            contents: { source: `data:;base64,${Buffer.from(content).toString('base64')}` },
          })),
        },
      },
    },
  };
}

/** Writes a folder that `docker build` and `buildah bud` take: the files, and a Containerfile that copies them. */
export async function writeContext(
  dir: string,
  base: string,
  files: ReadonlyMap<string, string>,
): Promise<void> {
  for (const [name, content] of files) {
    const place = path.join(dir, 'rootfs', name);
    await mkdir(path.dirname(place), { recursive: true });
    await writeFile(place, content);
  }
  await writeFile(path.join(dir, 'Containerfile'), `FROM ${base}\nCOPY rootfs/ /\n`);
}

/**
 * Pushes a base image of several layers of bytes that can't be compressed.
 *
 * @param name `host:port/repository:tag` @returns its size in bytes.
 */
export async function pushBase(
  client: RegistryClient,
  name: string,
  bytes: number,
  signal: AbortSignal,
): Promise<number> {
  const at = parseReference(name);
  const layers: { readonly diffId: string; readonly digest: string; readonly size: number }[] = [];
  for (let index = 0; index < LAYERS; index += 1) {
    const archive = await tarOf(`usr/share/base-${index}.bin`, randomBytes(Math.floor(bytes / LAYERS)));
    const compressed = gzipSync(archive, { level: 1 });
    await client.putBlob(at, compressed, signal);
    layers.push({ diffId: digestOf(archive), digest: digestOf(compressed), size: compressed.length });
  }
  const config = Buffer.from(
    JSON.stringify({
      architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
      os: 'linux',
      config: {},
      rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
      history: layers.map(() => ({ created_by: 'base' })),
    }),
  );
  await client.putBlob(at, config, signal);
  const mediaType = 'application/vnd.docker.distribution.manifest.v2+json';
  const manifest = {
    schemaVersion: 2,
    mediaType,
    config: {
      mediaType: 'application/vnd.docker.container.image.v1+json',
      digest: digestOf(config),
      size: config.length,
    },
    layers: layers.map(({ digest, size }) => ({
      mediaType: 'application/vnd.docker.image.rootfs.diff.tar.gzip',
      digest,
      size,
    })),
  };
  await client.putManifest(at, { mediaType, bytes: Buffer.from(JSON.stringify(manifest)) }, signal);
  return layers.reduce((sum, { size }) => sum + size, 0);
}

async function tarOf(name: string, content: Buffer): Promise<Buffer> {
  const archive = pack();
  archive.entry({ name }, content);
  archive.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of archive) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
