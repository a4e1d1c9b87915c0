import { createHash, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { osCommandRunner } from '../../daemon/os/os-command.ts';

/** What a machine with systemd and ostree needs; everything else comes along by dependency. */
const PACKAGES: readonly string[] = ['systemd', 'systemd-sysv', 'dbus', 'ostree'];
const SUITE = 'bookworm';
const MIRROR = 'http://deb.debian.org/debian';
/** 30 to 90 s with a near mirror. */
const BUILD_TIMEOUT_MS = 600_000;

const OPTIONS: readonly string[] = [
  '--variant=minbase',
  '--mode=root',
  '--format=directory',
  `--include=${PACKAGES.join(',')}`,
  ...['doc', 'man', 'locale'].map((name) => `--dpkgopt=path-exclude=/usr/share/${name}/*`),
  // Package lists and downloads are no part of an operating system; the rest nothing here uses, and it is a quarter of all.
  '--customize-hook=rm -rf "$1"/var/cache/apt "$1"/var/lib/apt/lists',
  '--customize-hook=rm -rf "$1"/usr/share/perl "$1"/usr/lib/*/perl "$1"/usr/lib/*/gconv',
  '--quiet',
];

/** @returns where the root file system lies: another recipe, another place. */
export function rootfsPath(cacheDirectory: string): string {
  const recipe = JSON.stringify([SUITE, MIRROR, OPTIONS]);
  return path.join(
    cacheDirectory,
    `debian-${createHash('sha256').update(recipe).digest('hex').slice(0, 12)}`,
  );
}

/**
 * Builds Debian's root file system with systemd and ostree, from packages, unless it is there.
 *
 * @param onBuild called when it has to be built, which takes a minute or so.
 * @returns its directory, which is not to be written to. @throws OsCommandError when a package can't be had.
 */
export async function ensureRootfs(
  cacheDirectory: string,
  signal: AbortSignal,
  onBuild: () => void = () => undefined,
): Promise<string> {
  const place = rootfsPath(cacheDirectory);
  if (existsSync(place)) return place;
  onBuild();
  await mkdir(cacheDirectory, { recursive: true });
  const building = `${place}.${randomUUID()}`;
  try {
    await osCommandRunner()(['mmdebstrap', ...OPTIONS, SUITE, building, MIRROR], {
      timeoutMs: BUILD_TIMEOUT_MS,
      signal,
    });
    await rename(building, place).catch((error: NodeJS.ErrnoException) => {
      // Somebody else was faster; both are the same.
      if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error;
    });
    return place;
  } finally {
    await rm(building, { recursive: true, force: true });
  }
}
