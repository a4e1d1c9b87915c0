import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { ignoreMissing } from '../../daemon/files/tree-entry.ts';
import { directoryNodeLayout } from '../../workshop/sandbox/node/directory-host.ts';
import { type NotedPackages, Refusal } from './stand-in.ts';

/** Packages of every image of a stand-in's. */
const OF_IMAGES = ['kernel', 'kernel-core', 'kernel-modules', 'kernel-modules-core', 'kernel-modules-extra'];
/** What the host's own repositories have. */
const OF_REPOSITORIES = [
  'htop',
  'usbguard',
  'sysstat',
  'kernel-rt-core',
  'kernel-rt-modules',
  'kernel-rt-modules-extra',
];
const EXTENSIONS_FILE = 'etc/yum.repos.d/coreos-extensions.repo';

export interface PackagesAsked {
  readonly install?: readonly string[];
  readonly uninstall?: readonly string[];
  readonly remove?: readonly string[];
  readonly reset?: readonly string[];
}

/**
 * @returns what a deployment's origin then says of packages.
 * @throws Refusal in the words of rpm-ostree (rust/src/treefile.rs; rpmostreed-transaction-types.cxx for resets).
 */
export function changePackages(present: NotedPackages, asked: PackagesAsked): NotedPackages {
  const { install = [], uninstall = [], remove = [], reset = [] } = asked;
  const kept = present.installed.filter((name) => !uninstall.includes(name));
  const left = present.removed.filter((name) => !reset.includes(name));
  for (const name of uninstall) {
    if (present.installed.includes(name)) continue;
    throw new Refusal(`error: Package/capability '${name}' is not currently requested\n`);
  }
  for (const name of install) {
    if (!kept.includes(name)) continue;
    throw new Refusal(`error: Package/capability '${name}' is already requested\n`);
  }
  for (const name of reset) {
    if (!present.removed.includes(name)) throw new Refusal(`error: No overrides for package '${name}'\n`);
  }
  for (const name of remove) {
    if (left.includes(name)) throw new Refusal(`error: Override already exists for package '${name}'\n`);
  }
  return { installed: [...kept, ...install], removed: [...left, ...remove] };
}

/**
 * @param dir of the node.
 * @throws Refusal for packages that no repository has, that the image has not to be removed, and for two kernels.
 */
export async function requirePackages(dir: string, { installed, removed }: NotedPackages): Promise<void> {
  const known = new Set([...OF_REPOSITORIES, ...(await packagesOfExtensions(dir))]);
  const unknown = installed.filter((name) => !known.has(name));
  if (unknown.length > 0) throw new Refusal(`error: Packages not found: ${unknown.join(', ')}\n`);
  const missing = removed.filter((name) => !OF_IMAGES.includes(name));
  if (missing[0] !== undefined) throw new Refusal(`error: Package "${missing[0]}" not found\n`);
  const kernels = ['kernel-core', ...installed].filter(
    (name) => /^kernel-(?:\w+-)?core$/.test(name) && !removed.includes(name),
  );
  if (kernels.length !== 1) throw new Refusal(`error: Multiple kernels or none: ${kernels.join(', ')}\n`);
}

async function packagesOfExtensions(dir: string): Promise<readonly string[]> {
  const { root } = directoryNodeLayout(dir);
  const text = await readFile(path.join(root, EXTENSIONS_FILE), 'utf8').catch(ignoreMissing);
  if (text === undefined) return [];
  const directory = /^baseurl=file:\/\/(.*)$/m.exec(text)?.[1] ?? '';
  const names = await readdir(path.join(root, directory)).catch(ignoreMissing);
  if (names === undefined)
    throw new Refusal("error: Updating rpm-md repo 'coreos-extensions': no repodata\n");
  return names.filter((name) => name.endsWith('.rpm')).map((name) => name.slice(0, -'.rpm'.length));
}

/** Makes a commit of an image with its packages. @param dir of the node. @returns its ref. */
export async function composePackages(dir: string, ref: string, packages: NotedPackages): Promise<string> {
  const { sysroot } = directoryNodeLayout(dir);
  const tree = await mkdtemp(path.join(dir, 'packages-'));
  const listed = path.join(tree, 'usr/lib/packages');
  await mkdir(listed, { recursive: true });
  for (const name of packages.installed) await writeFile(path.join(listed, name), 'installed\n');
  for (const name of packages.removed) await writeFile(path.join(listed, name), 'removed\n');
  const hash = createHash('sha256')
    .update(JSON.stringify([ref, packages]))
    .digest('hex');
  const branch = `rpmostree/composed/${hash}`;
  const repo = `--repo=${path.join(sysroot, 'ostree/repo')}`;
  const trees = [`--tree=ref=${ref}`, `--tree=dir=${tree}`];
  const options = ['--owner-uid=0', '--owner-gid=0', '--timestamp=1970-01-01T00:00:00Z'];
  await promisify(execFile)('ostree', ['commit', repo, `--branch=${branch}`, ...options, ...trees]);
  await rm(tree, { recursive: true });
  return branch;
}
