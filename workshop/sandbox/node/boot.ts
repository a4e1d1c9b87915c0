import { randomUUID } from 'node:crypto';
import { watch } from 'node:fs';
import { lstat, mkdir, readdir, readlink, rename, rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { OsCommandError, osCommandRunner, type RunOsCommand } from '../../../daemon/os/os-command.ts';
import { listDeployments, type OstreeDeployment } from '../../../daemon/os/ostree/deployments.ts';
import { ostree } from '../../../daemon/os/ostree/ostree.ts';
import {
  type DirectoryMachine,
  type DirectoryNodeLayout,
  directoryNodeLayout,
  type RebootRequest,
  readDirectoryMachine,
  readRebootRequest,
} from './directory-host.ts';

const BOOT_TIMEOUT_MS = 60_000;

/**
 * Lines that can't be applied don't prevent a host from booting (systemd-tmpfiles-setup.service, SuccessExitStatus=).
 */
const TMPFILES_TOLERATED: ReadonlySet<number | undefined> = new Set([65, 73]);

/**
 * Boots a directory node: what firmware, initramfs and systemd do to a machine's root. The bootloader's first
 * deployment is taken, /run and /tmp are empty, the image's tmpfiles fragments are carried out, and there is a new boot
 * id.
 *
 * @param dir of a node that createNode made and on which no process runs.
 * @returns the present boot. @throws when there is no deployment, OsCommandError.
 */
export async function bootNode(
  dir: string,
  signal = AbortSignal.timeout(BOOT_TIMEOUT_MS),
): Promise<DirectoryMachine> {
  const layout = directoryNodeLayout(dir);
  const run = osCommandRunner();
  const [first] = await listDeployments(layout.sysroot);
  if (first === undefined)
    throw new Error(`${layout.sysroot}: no deployment to boot; the node was not created`);
  await mountRoot(layout, first, run, signal);
  await runTmpfiles(layout, run, signal);
  const before = await readDirectoryMachine(layout).catch(() => undefined);
  return writeMachine(layout, {
    bootID: randomUUID(),
    deployment: path.relative(layout.sysroot, first.directory),
    bootCount: (before?.bootCount ?? 0) + 1,
  });
}

/**
 * Boots a directory node's userspace alone, as systemd's soft-reboot.target does: another root, and /run and the kernel
 * stay.
 *
 * @param deployment its directory, relative to the sysroot.
 */
export async function bootNodeSoftly(
  dir: string,
  deployment: string,
  signal = AbortSignal.timeout(BOOT_TIMEOUT_MS),
): Promise<DirectoryMachine> {
  const layout = directoryNodeLayout(dir);
  const run = osCommandRunner();
  const all = await listDeployments(layout.sysroot);
  const next = all.find(({ directory }) => path.relative(layout.sysroot, directory) === deployment);
  if (next === undefined) throw new Error(`${layout.sysroot}: ${deployment} is no deployment of it`);
  const kept = path.join(dir, 'run');
  await rename(path.join(layout.root, 'run'), kept);
  await mountRoot(layout, next, run, signal);
  await rm(path.join(layout.root, 'run'), { recursive: true });
  await rename(kept, path.join(layout.root, 'run'));
  await runTmpfiles(layout, run, signal);
  const before = await readDirectoryMachine(layout);
  const count = (before.softBoot?.count ?? 0) + 1;
  return writeMachine(layout, { ...before, deployment, softBoot: { count, since: Date.now() } });
}

async function writeMachine(
  layout: DirectoryNodeLayout,
  machine: DirectoryMachine,
): Promise<DirectoryMachine> {
  await writeFile(`${layout.machine}.new`, `${JSON.stringify(machine)}\n`);
  await rename(`${layout.machine}.new`, layout.machine);
  return machine;
}

/**
 * Makes the running root of links, where ostree-prepare-root would mount. Only /usr is a tree of its own, so that what
 * is written to it is gone with the next boot.
 */
async function mountRoot(
  { root, sysroot }: DirectoryNodeLayout,
  deployment: OstreeDeployment,
  run: RunOsCommand,
  signal: AbortSignal,
): Promise<void> {
  const usr = path.join(root, 'usr');
  await rm(`${usr}.new`, { recursive: true, force: true });
  await ostree(run, sysroot).checkout(
    { ref: deployment.commit, destination: `${usr}.new`, subpath: '/usr' },
    signal,
  );
  await rm(usr, { recursive: true, force: true });
  await rename(`${usr}.new`, usr);

  const inside = (place: string) => path.relative(root, place);
  for (const name of await readdir(deployment.directory)) {
    if (name === 'usr' || name === 'sysroot') continue;
    const place = path.join(root, name);
    const source = path.join(deployment.directory, name);
    if (name === 'etc') await makeLink(inside(source), place);
    else if (name === 'var') await makeLink(inside(path.resolve(deployment.directory, '../../var')), place);
    else if (name === 'boot') await makeLink(inside(path.join(sysroot, 'boot')), place);
    else if ((await lstat(source)).isSymbolicLink()) await makeLink(await readlink(source), place);
    else {
      await rm(place, { recursive: true, force: true });
      await mkdir(place);
    }
  }
}

async function makeLink(target: string, place: string): Promise<void> {
  await rm(place, { recursive: true, force: true });
  await symlink(target, place);
}

async function runTmpfiles(
  { root }: DirectoryNodeLayout,
  run: RunOsCommand,
  signal: AbortSignal,
): Promise<void> {
  try {
    await run(['systemd-tmpfiles', '--create', '--boot', `--root=${root}`], {
      timeoutMs: BOOT_TIMEOUT_MS,
      signal,
    });
  } catch (error) {
    if (error instanceof OsCommandError && TMPFILES_TOLERATED.has(error.exitCode)) return;
    throw error;
  }
}

/**
 * Waits for the file by which a directory node's daemon asks for a reboot, and takes it away.
 *
 * @returns what it asks for; undefined when the signal was aborted before.
 */
export async function untilRebootRequested(
  dir: string,
  signal: AbortSignal,
): Promise<RebootRequest | undefined> {
  const layout = directoryNodeLayout(dir);
  const { promise, resolve } = Promise.withResolvers<RebootRequest | undefined>();
  const look = async () => {
    const request = await readRebootRequest(layout).catch(() => undefined);
    if (request !== undefined || signal.aborted) resolve(request);
  };
  const watcher = watch(dir, () => void look());
  const stop = () => resolve(undefined);
  signal.addEventListener('abort', stop);
  try {
    await look();
    const came = await promise;
    await rm(layout.rebootRequest, { force: true });
    return came;
  } finally {
    watcher.close();
    signal.removeEventListener('abort', stop);
  }
}
