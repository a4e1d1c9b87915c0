import { createHash, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { osCommandRunner } from '../../../daemon/os/os-command.ts';
import { whileLocked } from '../lock.ts';

/** What a root file system is made of, beside what every Debian has. */
export interface RootfsRecipe {
  /** Everything else comes along by dependency. */
  readonly packages: readonly string[];
  /** The release of Debian; `SUITE` unless given. */
  readonly suite?: string;
  /** Of apt (apt.conf(5)), while the packages are fetched. */
  readonly aptOptions?: readonly string[];
  /** Of mmdebstrap, `--essential-hook=…` and `--customize-hook=…`, in the order in which they are run. */
  readonly hooks: readonly string[];
}

/**
 * Nothing here uses them, and they are half of all files: each costs time whenever an image is unpacked, deployed or
 * booted.
 */
const UNUSED = [
  ...['lib/*/perl', 'lib/*/gconv'],
  ...['bash-completion', 'info', 'lintian', 'perl', 'perl5', 'zoneinfo', 'zsh'].map(
    (name) => `share/${name}`,
  ),
];

/** A machine with systemd and ostree, and no kernel: it is booted in a container. */
export const CONTAINER_RECIPE: RootfsRecipe = {
  // procps: units reload by /bin/kill.
  packages: ['systemd', 'systemd-sysv', 'dbus', 'ostree', 'procps'],
  hooks: [`--customize-hook=cd "$1"/usr && rm -rf ${UNUSED.join(' ')}`],
};
/** Shown while it is being built. */
export const BUILDING_ROOTFS = "building the nodes' Debian from packages; this takes a minute or two, once";
const SUITE = 'bookworm';
const MIRROR = 'http://deb.debian.org/debian';
/** 30 to 90 s with a near mirror; beside other work, more than ten minutes have been seen. */
const BUILD_TIMEOUT_MS = 1_800_000;

const optionsOf = ({ packages, aptOptions = [], hooks }: RootfsRecipe): readonly string[] => [
  ...aptOptions.map((option) => `--aptopt=${option}`),
  '--variant=minbase',
  '--mode=root',
  '--format=directory',
  `--include=${packages.join(',')}`,
  ...['doc', 'man', 'locale'].map((name) => `--dpkgopt=path-exclude=/usr/share/${name}/*`),
  // Package lists and downloads are no part of an operating system.
  '--customize-hook=rm -rf "$1"/var/cache/apt "$1"/var/lib/apt/lists',
  ...hooks,
  '--quiet',
];

/** @returns where the root file system lies: another recipe, another place. */
function rootfsPath(cacheDirectory: string, recipe: RootfsRecipe): string {
  const inputs = JSON.stringify([recipe.suite ?? SUITE, MIRROR, optionsOf(recipe)]);
  return path.join(
    cacheDirectory,
    `debian-${createHash('sha256').update(inputs).digest('hex').slice(0, 12)}`,
  );
}

/**
 * Builds a root file system of Debian from packages, unless it exists. Others that need the same wait until it is
 * built.
 *
 * @param onBuild called when it doesn't exist yet: to build it takes a minute or so.
 * @returns its directory, which is not to be written to. @throws OsCommandError when a package can't be had.
 */
export async function ensureRootfs(
  cacheDirectory: string,
  signal: AbortSignal,
  onBuild: () => void = () => undefined,
  recipe = CONTAINER_RECIPE,
): Promise<string> {
  const place = rootfsPath(cacheDirectory, recipe);
  if (existsSync(place)) return place;
  onBuild();
  await mkdir(cacheDirectory, { recursive: true });
  return whileLocked(place, signal, () => buildRootfs(place, recipe, signal));
}

async function buildRootfs(place: string, recipe: RootfsRecipe, signal: AbortSignal): Promise<string> {
  if (existsSync(place)) return place;
  const building = `${place}.${randomUUID()}`;
  try {
    const { suite = SUITE } = recipe;
    await osCommandRunner()(['mmdebstrap', ...optionsOf(recipe), suite, building, MIRROR], {
      timeoutMs: BUILD_TIMEOUT_MS,
      signal,
    });
    await rename(building, place);
    return place;
  } finally {
    await rm(building, { recursive: true, force: true });
  }
}
