import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { osCommandRunner } from '../../../daemon/os/os-command.ts';
import { CACHE } from '../../../workshop/sandbox/layout.ts';
import { whileLocked } from '../../../workshop/sandbox/lock.ts';
import { archiveOf, type RootfsArchive } from '../../../workshop/sandbox/systemd-node/rootfs-archive.ts';

const PULL_MS = 1_800_000;
/** A registry of this machine's. */
const LOOPBACK = /^(?:localhost|127\.0\.0\.1)[:/]/;

/**
 * Pulls a bootable image and makes one layer of it, unless that is there. Capabilities and labels of its files are
 * lost, which no machine of the lab needs.
 *
 * @param image with its registry, such as quay.io/fedora/fedora-bootc:44.
 * @throws OsCommandError when it can't be had.
 */
export async function baseArchive(image: string, signal: AbortSignal): Promise<RootfsArchive> {
  const run = osCommandRunner();
  const limits = { timeoutMs: PULL_MS, signal };
  const insecure = LOOPBACK.test(image);
  const source = `docker://${image}`;
  const inspect = ['skopeo', 'inspect', '--format={{.Digest}}', `--tls-verify=${!insecure}`, source] as const;
  const digest = (await run([...inspect], limits)).trim();
  const rootfs = path.join(CACHE, `base-${digest.slice('sha256:'.length).slice(0, 12)}`);
  await mkdir(CACHE, { recursive: true });
  if (!existsSync(rootfs)) await whileLocked(rootfs, signal, () => unpack(source, rootfs, insecure, signal));
  return archiveOf(rootfs, signal);
}

async function unpack(source: string, rootfs: string, insecure: boolean, signal: AbortSignal): Promise<void> {
  if (existsSync(rootfs)) return;
  process.stderr.write(`pulling ${source}; this takes minutes, once\n`);
  const run = osCommandRunner();
  const limits = { timeoutMs: PULL_MS, signal };
  const [layout, unpacked] = [`${rootfs}.${randomUUID()}.oci`, `${rootfs}.${randomUUID()}`];
  try {
    const copied = `oci:${layout}:base`;
    await run(['skopeo', 'copy', '--quiet', `--src-tls-verify=${!insecure}`, source, copied], limits);
    await run(['umoci', 'raw', 'unpack', '--image', `${layout}:base`, unpacked], limits);
    await rename(unpacked, rootfs);
  } finally {
    for (const place of [layout, unpacked]) await rm(place, { recursive: true, force: true });
  }
}
