import { mkdir, readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { execa } from 'execa';
import { listDeployments } from '../../../daemon/os/ostree/deployments.ts';
import type { LayerEntry } from '../../../image/layer/entry.ts';
import { createNodes } from '../node/create.ts';
import { directoryNodeLayout } from '../node/directory-host.ts';
import { memorySource } from '../node/memory-source.ts';
import { stockImage } from '../node/stock-image.ts';
import type { NodeKind } from '../node-kind.ts';
import { pushImage } from '../registry.ts';
import { readMachineRecord } from './machine.ts';
import { bootSystemdNode } from './node.ts';
import { BUILDING_ROOTFS } from './rootfs.ts';
import { ensureRootfsArchive, type RootfsArchive, rootfsSource } from './rootfs-archive.ts';

/** @param cacheDirectory where Debian's root file system is kept from one sandbox to the next. */
export function systemdNodes(cacheDirectory: string): NodeKind {
  let stock: { readonly archive: RootfsArchive; readonly layer: readonly LayerEntry[] } | undefined;
  const prepared = () => {
    if (stock === undefined) throw new Error('the nodes were not prepared');
    return stock;
  };
  return {
    name: 'systemd',
    async prepare(onProgress, signal) {
      const archive = await ensureRootfsArchive(cacheDirectory, signal, () => onProgress(BUILDING_ROOTFS));
      stock = { archive, layer: await systemdStockLayer(archive.rootfs) };
    },
    pushStock: (registry, _withShell, signal) => {
      const { archive: onto, layer: entries } = prepared();
      return pushImage(registry, 'os/stock', { entries, onto }, signal);
    },
    async install(nodes, image, signal) {
      const { archive, layer } = prepared();
      const source = await rootfsSource(archive, layer);
      await createNodes(nodes, { image, source, signal }, (from, to) => cloneNode(from, to, signal));
    },
    async boot(directory, signal) {
      // Its images come from where its daemon says.
      const { machine } = await bootSystemdNode(directory, memorySource(new Map()), signal);
      return { bootID: await machine.bootID(), down: machine.off, kill: machine.kill };
    },
    daemonHost: async (directory) => {
      const { leader } = await readMachineRecord(directory);
      return { args: ['--host-root', `/proc/${leader}/root`, '--host-init', String(leader)] };
    },
  };
}

/**
 * Makes another node of one that was just installed. The objects of its repository and the /usr of its deployment are
 * hard links to the other's: ostree never writes to either, it makes new files, and both are nearly all of a node.
 *
 * @param to does not exist yet. @throws ExecaError when cp fails.
 */
export async function cloneNode(from: string, to: string, signal: AbortSignal): Promise<void> {
  const { sysroot } = directoryNodeLayout(from);
  const deployments = await listDeployments(sysroot);
  const shared = [
    path.join(sysroot, 'ostree/repo/objects'),
    ...deployments.map(({ directory }) => path.join(directory, 'usr')),
  ];
  await cloneDirectory(from, to, shared, signal);
}

/** @param shared absolute paths of trees that are linked; everything else is copied. */
async function cloneDirectory(
  from: string,
  to: string,
  shared: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const { mode, uid, gid } = await stat(from);
  if (uid !== 0 || gid !== 0) throw new Error(`${from}: expected a directory of root's`);
  await mkdir(to, { mode: mode & 0o7777 });
  const own: string[] = [];
  for (const name of await readdir(from)) {
    const [source, target] = [path.join(from, name), path.join(to, name)];
    if (shared.includes(source)) {
      await copy(['--archive', '--link', '--no-target-directory', source, target], signal);
    } else if (shared.some((tree) => tree.startsWith(`${source}/`))) {
      await cloneDirectory(source, target, shared, signal);
    } else own.push(source);
  }
  if (own.length > 0) {
    await copy(['--archive', '--reflink=auto', `--target-directory=${to}`, '--', ...own], signal);
  }
}

async function copy(args: readonly string[], signal: AbortSignal): Promise<void> {
  await execa('cp', args, { cancelSignal: signal });
}

/** What Debian has of its own: its users, its names of the distribution, its links, and real kernel parameters. */
const DEBIANS: ReadonlySet<string> = new Set([
  '/etc/group',
  '/etc/hosts',
  '/etc/nsswitch.conf',
  '/etc/os-release',
  '/etc/passwd',
  '/etc/shadow',
  '/usr/lib/os-release',
  '/usr/lib/systemd/system/systemd-sysctl.service',
  '/usr/share/zoneinfo/UTC',
  '/var/lib/dpkg/status',
]);
/** Stands in for a daemon of a node: it runs, and ignores a SIGHUP to read its configuration again. */
const STAND_IN = "#!/bin/sh\ntrap '' HUP\nexec sleep infinity\n";
/** State of services, the journal among it: it records over all boots what was restarted. */
const TMPFILES = 'd /var/log/journal 2755 root systemd-journal -\n';
const UPDATE_CA_TRUST =
  '[Unit]\nDescription=Update CA trust\n\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\n';

/**
 * What the sandbox's stock image has above Debian: the files, units and users of the one for directory nodes, with
 * daemons that run.
 *
 * @param rootfs Debian's root file system.
 */
export async function systemdStockLayer(rootfs: string): Promise<readonly LayerEntry[]> {
  const stock = stockImage().filter(isKept).map(runnable);
  const appended = await Promise.all(
    ['/etc/passwd', '/etc/group', '/etc/shadow'].map((name) => withUsers(rootfs, name)),
  );
  // Everything below /var is left out of the tree; its packages are what a base image is known by.
  const packages = await readFile(path.join(rootfs, 'var/lib/dpkg/status'), 'utf8');
  return [
    ...stock,
    ...appended,
    text('/var/lib/dpkg/status', packages),
    text('/usr/lib/tmpfiles.d/10-sandbox.conf', TMPFILES),
    text('/usr/lib/systemd/system/coreos-update-ca-trust.service', UPDATE_CA_TRUST),
  ];
}

function isKept({ type, path: name }: LayerEntry): boolean {
  if (DEBIANS.has(name) || name.startsWith('/usr/lib/modules/')) return false;
  if (name === '/usr/lib/systemd/system/coreos-update-ca-trust.service') return false;
  // Directories and links of the tree are Debian's; what enables a unit is the stock image's.
  return type === 'file' || name.includes('.wants/');
}

function runnable(entry: LayerEntry): LayerEntry {
  if (entry.type !== 'file' || !entry.path.startsWith('/usr/bin/')) return entry;
  return { ...entry, content: Buffer.from(STAND_IN) };
}

/** Debian's accounts, and those of the stock image that it doesn't have. */
async function withUsers(rootfs: string, name: string): Promise<LayerEntry> {
  const own = await readFile(path.join(rootfs, name), 'utf8');
  const known = new Set(own.split('\n').map((line) => line.split(':')[0]));
  const stock = stockImage().find((entry) => entry.path === name);
  const lines = stock?.type === 'file' ? Buffer.from(stock.content).toString('utf8').split('\n') : [];
  const more = lines.filter((line) => line !== '' && !known.has(line.split(':')[0]));
  const mode = name === '/etc/shadow' ? 0o640 : 0o644;
  return text(name, own + more.map((line) => `${line}\n`).join(''), mode);
}

function text(name: string, content: string, mode = 0o644): LayerEntry {
  return { type: 'file', path: name, mode, uid: 0, gid: 0, content: Buffer.from(content) };
}
