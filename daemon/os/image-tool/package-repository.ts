import { link, mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { nodePaths } from '../../../api/names.ts';
import type { DigestedPullspec } from '../../../api/references.ts';
import type { LayerItem } from '../../../image/layer/entry.ts';
import type { OsHost } from '../os-host.ts';
import { type ImageSource, requireSpace, spaceNeeded } from '../ostree/image-source.ts';

/** Where an image of extensions has its repository (MCO, daemon/update.go addExtensionsRepo). */
const IN_IMAGE = 'usr/share/rpm-ostree/extensions';
/** Where rpm-ostree looks for repositories; MCO's name, so that one that MCO left is replaced. */
const REPOSITORY_FILE = 'etc/yum.repos.d/coreos-extensions.repo';

/**
 * Runs work while the repository of an image is configured on the host, and removes it afterwards: rpm-ostree reads
 * every configured repository, whatever it installs.
 *
 * @throws RegistryError, an Error if the image is not a repository, and what the work throws.
 */
export async function withPackageRepository<T>(
  options: Pick<OsHost, 'root' | 'commandPath' | 'source'>,
  image: DigestedPullspec,
  work: () => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  await removePackageRepository(options.root);
  try {
    const directory = directoryIn(options.root);
    await extractRepository(options.source, image, directory, signal);
    await mkdir(path.dirname(path.join(options.root, REPOSITORY_FILE)), { recursive: true });
    const text = repositoryFile(options.commandPath(directory));
    await writeFile(path.join(options.root, REPOSITORY_FILE), text, { mode: 0o644 });
    return await work();
  } finally {
    await removePackageRepository(options.root);
  }
}

/** Removes what a killed daemon has left. @param root the running root. */
export async function removePackageRepository(root: string): Promise<void> {
  await rm(path.join(root, REPOSITORY_FILE), { force: true });
  await rm(directoryIn(root), { recursive: true, force: true });
}

/** On a disk: MCO's is in /run, where a whole repository is a whole repository of memory. */
function directoryIn(root: string): string {
  return path.join(root, nodePaths.state, 'extensions');
}

function repositoryFile(directory: string): string {
  const lines = [
    '[coreos-extensions]',
    'name=coreos-extensions',
    'enabled=1',
    'metadata_expire=1m',
    `baseurl=file://${directory}`,
    'gpgcheck=0',
    'skip_if_unavailable=False',
  ];
  return `${lines.join('\n')}\n`;
}

async function extractRepository(
  source: ImageSource,
  image: DigestedPullspec,
  directory: string,
  signal: AbortSignal,
): Promise<void> {
  const { layers } = await source.open(image, signal);
  await mkdir(directory, { recursive: true, mode: 0o755 });
  await requireSpace(directory, spaceNeeded(layers));
  let files = 0;
  for (const layer of layers) {
    for await (const item of layer.read(() => undefined, signal)) {
      signal.throwIfAborted();
      const name = nameInRepository(item.path);
      if (name === undefined) continue;
      await extractItem(item, name, directory);
      files += item.type === 'file' ? 1 : 0;
    }
  }
  if (files > 0) return;
  throw new Error(`${image}: has nothing in /${IN_IMAGE}; expected a package repository`);
}

/** @returns the path below the repository; undefined for a path outside of it. */
function nameInRepository(name: string): string | undefined {
  const plain = path.posix.normalize(`/${name}`).slice(1);
  if (!plain.startsWith(`${IN_IMAGE}/`)) return undefined;
  return plain.slice(IN_IMAGE.length + 1).replace(/\/$/, '');
}

/** No link is made that could lead elsewhere, so no later file is written through one. */
async function extractItem(item: LayerItem, name: string, directory: string): Promise<void> {
  const place = path.join(directory, name);
  switch (item.type) {
    case 'directory':
      await mkdir(place, { recursive: true, mode: 0o755 });
      return;
    case 'file':
      await mkdir(path.dirname(place), { recursive: true, mode: 0o755 });
      await rm(place, { recursive: true, force: true });
      await writeFile(place, item.content, { flag: 'wx', mode: 0o644 });
      return;
    case 'hardlink': {
      const target = nameInRepository(item.target);
      if (target === undefined) break;
      await rm(place, { recursive: true, force: true });
      await link(path.join(directory, target), place);
      return;
    }
    case 'whiteout':
      await rm(place, { recursive: true, force: true });
      return;
    case 'opaque':
      await rm(place, { recursive: true, force: true });
      await mkdir(place, { recursive: true, mode: 0o755 });
      return;
    case 'symlink':
      break;
  }
  throw new Error(
    `${item.path}: is a ${item.type} outside of the repository; expected only files in /${IN_IMAGE}`,
  );
}
