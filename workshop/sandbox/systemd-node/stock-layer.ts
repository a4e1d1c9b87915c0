import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { LayerEntry } from '../../../image/layer/entry.ts';
import { stockImage } from '../node/stock-image.ts';

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
]);
/** Stands in for a daemon of a node: it runs, and a SIGHUP to read its configuration anew is nothing to it. */
const STAND_IN = "#!/bin/sh\ntrap '' HUP\nexec sleep infinity\n";
/** State of services, the journal among it: it tells over all boots what was restarted. */
const TMPFILES = 'd /var/log/journal 2755 root systemd-journal -\n';
const UPDATE_CA_TRUST =
  '[Unit]\nDescription=Update CA trust\n\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\n';

/**
 * What the sandbox's stock image has above Debian: the files, units and users of the one for directory nodes, with daemons
 * that run.
 *
 * @param rootfs Debian's root file system.
 */
export async function systemdStockLayer(rootfs: string): Promise<readonly LayerEntry[]> {
  const stock = stockImage().filter(isKept).map(runnable);
  const appended = await Promise.all(
    ['/etc/passwd', '/etc/group', '/etc/shadow'].map((name) => withUsers(rootfs, name)),
  );
  return [
    ...stock,
    ...appended,
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
