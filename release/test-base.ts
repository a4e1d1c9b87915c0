import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { execa } from 'execa';
import { descriptorOf } from '../image/digest.ts';
import { type Instance, imageIndex } from '../image/image-index.ts';
import type { LayerEntry } from '../image/layer/entry.ts';
import { writeLayer } from '../image/layer/write-layer.ts';
import { formatManifest } from '../image/manifest.ts';
import type { Reference } from '../image/reference.ts';
import { OCI_CONFIG, OCI_LAYER, OCI_MANIFEST } from '../image/registry/manifest-type.ts';
import type { RegistryClient } from '../image/registry/registry-client.ts';
import { fileEntry } from './shale-files.ts';
import { PROGRAMS } from './system-files.ts';

const TRIPLETS = { amd64: 'x86_64-linux-gnu', arm64: 'aarch64-linux-gnu' };

/**
 * Pushes a base image for tests, for both architectures, with this machine's own programs and the libraries that they
 * load. What is in it for arm64 is not made for arm64, and nothing runs it.
 */
export async function pushTestBase(
  client: RegistryClient,
  at: Reference,
  signal: AbortSignal,
): Promise<void> {
  const instances: Instance[] = [];
  for (const architecture of ['amd64', 'arm64'] as const) {
    const layer = await writeLayer(await baseEntries(TRIPLETS[architecture]));
    const config = Buffer.from(
      JSON.stringify({
        architecture,
        os: 'linux',
        rootfs: { type: 'layers', diff_ids: [layer.diffId] },
      }),
    );
    const manifest = formatManifest({
      config: descriptorOf(OCI_CONFIG, config),
      layers: [descriptorOf(OCI_LAYER, layer.bytes)],
    });
    await client.putBlob(at, config, signal);
    await client.putBlob(at, layer.bytes, signal);
    const descriptor = descriptorOf(OCI_MANIFEST, manifest);
    await client.putManifest(
      { ...at, digest: descriptor.digest },
      { mediaType: OCI_MANIFEST, bytes: manifest },
      signal,
    );
    instances.push({ descriptor, platform: { os: 'linux', architecture } });
  }
  await client.putManifest(at, imageIndex(instances), signal);
}

async function baseEntries(triplet: string): Promise<LayerEntry[]> {
  const programs = await Promise.all(
    PROGRAMS.map(async (name) => (await execa('sh', ['-c', `command -v ${name}`])).stdout),
  );
  const entries = new Map<string, LayerEntry>();
  const add = async (place: string, from: string) => {
    entries.set(place, fileEntry(place, await readFile(from), 0o755));
  };
  for (const program of programs) {
    await add(`/usr/bin/${path.basename(program)}`, program);
    const { stdout } = await execa('ldd', [program]);
    for (const [, library = ''] of stdout.matchAll(/=> (\/\S+)/g)) {
      await add(`/usr/lib/${triplet}/${path.basename(library)}`, library);
    }
    const loader = /^\s*(\/lib\S+)/m.exec(stdout)?.[1];
    if (loader !== undefined) await add(loader, loader);
  }
  const names = [...entries.keys()];
  const status = 'Package: base\nStatus: install ok installed\nVersion: 1.0-1\n';
  return [
    ...entries.values(),
    fileEntry('/var/lib/dpkg/status', status),
    fileEntry('/var/lib/dpkg/info/base:any.list', `${names.join('\n')}\n`),
  ];
}
