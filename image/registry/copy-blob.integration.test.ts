/** Blobs between two registries: memory in use, and a transfer that breaks off. */
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { deadline, patience } from '../../test/fixtures/patience.ts';
import { copyLimits, liveBytes } from '../../test/fixtures/registry/watched-copy.ts';
import { type DockerRegistry, startDockerRegistry } from '../../workshop/sandbox/docker-registry.ts';
import { digestOfHash } from '../digest.ts';
import { parseReference } from '../reference.ts';
import { createRegistryClient, type RegistryClient } from './registry-client.ts';

const MIB = 1024 * 1024;
/** Twice what may be held of it. */
const SIZE = 192 * MIB;
/** Each measurement takes a whole garbage collection. */
const CHECK_EVERY = 48 * MIB;
const signal = deadline(300_000);
let dir: string;
let registries: DockerRegistry[];
let client: RegistryClient;

beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'shale-copy-'));
  registries = await Promise.all(
    ['from', 'to'].map(async (name) => {
      await mkdir(path.join(dir, name));
      return startDockerRegistry({ dir: path.join(dir, name) });
    }),
  );
  client = createRegistryClient({ plainHttp: new Set(registries.map(({ host }) => host)) });
});
afterAll(async () => {
  for (const registry of registries) await registry.stop();
  await rm(dir, { recursive: true });
});

/** Pieces that differ, so that one in the wrong place would show. */
async function* content(): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < SIZE; at += MIB) yield Buffer.alloc(MIB, at / MIB);
}

async function digestOfContent() {
  const hash = createHash('sha256');
  for await (const piece of content()) hash.update(piece);
  return digestOfHash(hash);
}

test(
  'a blob goes from one registry to another in little memory, whatever its size',
  async () => {
    const [from, to] = registries.map(({ host }) => parseReference(`${host}/os/stock:1`));
    if (from === undefined || to === undefined) throw new Error('two registries are needed');
    const digest = await digestOfContent();
    await client.putBlobStream(from, { digest, size: SIZE }, content(), signal);
    const before = liveBytes();
    let held = 0;
    let read = 0;
    const source = from;
    const blob = { mediaType: 'application/octet-stream', digest, size: SIZE };
    async function* watched(): AsyncGenerator<Uint8Array> {
      for await (const chunk of client.readBlob(source, blob, signal)) {
        if (Math.floor(read / CHECK_EVERY) !== Math.floor((read + chunk.length) / CHECK_EVERY)) {
          held = Math.max(held, liveBytes() - before);
        }
        read += chunk.length;
        yield chunk;
      }
    }
    await client.putBlobStream(to, blob, watched(), signal);
    const hash = createHash('sha256');
    for await (const chunk of client.readBlob(to, blob, signal)) hash.update(chunk);
    expect(digestOfHash(hash)).toBe(digest);
    expect(held).toBeLessThanOrEqual(copyLimits.held);
  },
  patience(120_000),
);

test('a blob that breaks off is not there afterwards', async () => {
  const [to] = registries.map(({ host }) => parseReference(`${host}/os/broken:1`));
  if (to === undefined) throw new Error('a registry is needed');
  const digest = digestOfHash(createHash('sha256').update('whole'));
  async function* broken(): AsyncGenerator<Uint8Array> {
    yield Buffer.from('who');
    throw new Error('the source is gone');
  }
  await expect(client.putBlobStream(to, { digest, size: 5 }, broken(), signal)).rejects.toThrow(
    'the source is gone',
  );
  expect(await client.hasBlob(to, digest, signal)).toBe(false);
});

test('a blob of another content than its digest is refused by the registry', async () => {
  const [to] = registries.map(({ host }) => parseReference(`${host}/os/other:1`));
  if (to === undefined) throw new Error('a registry is needed');
  const digest = digestOfHash(createHash('sha256').update('something else'));
  async function* wrong(): AsyncGenerator<Uint8Array> {
    yield Buffer.from('this');
  }
  await expect(client.putBlobStream(to, { digest, size: 4 }, wrong(), signal)).rejects.toThrow();
});
