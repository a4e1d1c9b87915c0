import { createHash } from 'node:crypto';
import { access, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { listDeployments } from '../../daemon/os/ostree/deployments.ts';
import { readStagedDeployment } from '../../daemon/os/ostree/run-notes.ts';
import { NEXT_ROOT_NOTE } from '../../daemon/os/soft-reboot/userspace-boot.ts';
import { directoryNodeLayout } from '../../workshop/sandbox/node/directory-host.ts';
import { type ListedDeployment, Refusal, runStandIn, type StandIn } from './stand-in.ts';

/**
 * `ostree admin prepare-soft-reboot` of ostree 2026.4 (ostreedev/ostree: ot-admin-builtin-prepare-soft-reboot.c,
 * ostree_sysroot_deployment_can_soft_reboot, ostree-soft-reboot.c), which Debian 12's ostree has not: it refuses what
 * that refuses, in the words recorded beside it, and notes what would be mounted at /run/nextroot.
 */

/** @returns whether ostree would take it for a soft reboot: the same kernel and initramfs, and the same arguments. */
export async function isSameKernel(
  tool: StandIn,
  booted: ListedDeployment,
  target: ListedDeployment,
): Promise<boolean> {
  const [a, b] = await Promise.all([bootOf(tool, booted), bootOf(tool, target)]);
  return a === b;
}

/** @returns what bootc asks before it asks ostree (bootc: status.rs, has_soft_reboot_capability). */
export async function hasSoftRebootTarget({ dir }: StandIn): Promise<boolean> {
  const { root } = directoryNodeLayout(dir);
  return access(path.join(root, 'usr/lib/systemd/system/soft-reboot.target')).then(
    () => true,
    () => false,
  );
}

/** The checksum of kernel and initramfs, and the arguments without `ostree=`. */
async function bootOf(tool: StandIn, deployment: ListedDeployment): Promise<string> {
  const modules = path.join(tool.directoryOf(deployment), 'usr/lib/modules');
  const hash = createHash('sha256');
  for (const version of (await readdir(modules)).sort()) {
    for (const name of (await readdir(path.join(modules, version))).sort()) {
      if (!/^(?:vmlinuz|initramfs)/.test(name)) continue;
      hash.update(name).update(await readFile(path.join(modules, version, name)));
    }
  }
  return hash.update(JSON.stringify(await argumentsOf(tool, deployment))).digest('hex');
}

async function argumentsOf({ dir }: StandIn, { checksum, serial }: ListedDeployment) {
  const { root, sysroot } = directoryNodeLayout(dir);
  const staged = await readStagedDeployment(root, sysroot);
  const all = [...(staged === undefined ? [] : [staged]), ...(await listDeployments(sysroot))];
  return all.find(({ id }) => id === `${checksum}.${serial}`)?.kernelArguments;
}

/** Of the target: what ostree-prepare-root would read (ostree-prepare-root(1)). */
async function hasComposefs(tool: StandIn, target: ListedDeployment): Promise<boolean> {
  const file = path.join(tool.directoryOf(target), 'usr/lib/ostree/prepare-root.conf');
  const text = await readFile(file, 'utf8').catch(() => '');
  return /^\[composefs\]\nenabled\s*=\s*(?:yes|true|signed)$/m.test(text);
}

/** What is prepared for the next soft reboot, and when; in place of the device and inode that ostree notes. */
export async function readNextRoot(dir: string): Promise<string | undefined> {
  return readFile(path.join(directoryNodeLayout(dir).root, NEXT_ROOT_NOTE), 'utf8').catch(() => undefined);
}

async function prepare(tool: StandIn, args: readonly string[]): Promise<string> {
  const [name, sysroot, last, ...more] = args;
  if (name !== 'prepare-soft-reboot') throw new Refusal(`error: Unknown command '${name}'\n`);
  if (sysroot !== '--sysroot=/' || more.length > 0) {
    throw new Refusal('error: the stand-in takes --sysroot=/ and one more argument\n');
  }
  const note = path.join(directoryNodeLayout(tool.dir).root, NEXT_ROOT_NOTE);
  if (last === '--reset') {
    await rm(note, { force: true });
    return '';
  }
  if (!/^\d+$/.test(last ?? '')) throw new Refusal(`error: Invalid index: ${last}\n`);
  const all = await tool.deployments();
  const booted = all.find(({ isBooted }) => isBooted);
  const target = all[Number(last)];
  if (booted === undefined || target === undefined) {
    throw new Refusal(`error: Out of range deployment index ${last}, expected < ${all.length}\n`);
  }
  if (target === booted) {
    throw new Refusal(`error: Cannot prepare for soft-reboot currently booted deployment ${last}\n`);
  }
  if ((await readNextRoot(tool.dir)) !== undefined) {
    // ostree 2026.4 would, and leave both where they are on `--reset`.
    throw new Refusal('error: the stand-in mounts no root on another\n');
  }
  const failed = 'error: Preparing /run/nextroot for a soft-reboot: ';
  if (!(await isSameKernel(tool, booted, target))) {
    throw new Refusal(`${failed}Cannot soft-reboot to deployment with different kernel state\n`);
  }
  if (!(await hasComposefs(tool, target))) {
    const why = 'error: soft reboot not supported without composefs\n';
    throw new Refusal(`${why}${failed}Child process exited with code 1\n`);
  }
  await mkdir(path.dirname(note), { recursive: true });
  await writeFile(note, path.relative(directoryNodeLayout(tool.dir).sysroot, tool.directoryOf(target)));
  return '';
}

if (process.argv[1] === import.meta.filename) await runStandIn({ admin: prepare });
