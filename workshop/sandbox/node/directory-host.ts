import { randomUUID } from 'node:crypto';
import { readFile, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { bootIDOf } from '../../../api/boot-id.ts';
import { ignoreMissing } from '../../../daemon/files/tree-entry.ts';
import type { Host } from '../../../daemon/host/host.ts';

/** Where a directory node keeps its things: a machine that is a directory, for the sandbox and for tests. */
export interface DirectoryNodeLayout {
  readonly dir: string;
  /**
   * The running root as processes of the node see it. /usr is the booted image's, created at each boot from hard links
   * (as a transient overlay is: writes to it don't outlive the boot and never reach the deployment); /etc is a link to
   * the booted deployment's, /var to the one that all deployments share. No mounts, so nothing to clean up, and all
   * links are relative and stay inside, as `systemd-tmpfiles --root` demands.
   */
  readonly root: string;
  /** The physical root with ostree's repository, deployments and bootloader entries; `/sysroot` to the node. */
  readonly sysroot: string;
  readonly machine: string;
  readonly services: string;
  readonly serviceFaults: string;
  readonly rebootRequest: string;
}

/** @returns the paths of a directory node. */
export function directoryNodeLayout(dir: string): DirectoryNodeLayout {
  const root = path.join(dir, 'root');
  return {
    dir,
    root,
    sysroot: path.join(root, 'sysroot'),
    machine: path.join(dir, 'machine.json'),
    services: path.join(dir, 'services.jsonl'),
    serviceFaults: path.join(dir, 'service-faults.json'),
    rebootRequest: path.join(dir, 'reboot-requested'),
  };
}

const MachineSchema = z.object({
  bootID: z.string().min(1),
  /** The booted deployment's directory, relative to the sysroot. */
  deployment: z.string().min(1),
  bootCount: z.number().int().positive(),
  /** Reboots of its userspace alone since: how many, and when the last was, in ms since the epoch. */
  softBoot: z.object({ count: z.number().int().positive(), since: z.number() }).exactOptional(),
});

/** What the firmware and the kernel of a directory node know of its present boot. */
export type DirectoryMachine = z.infer<typeof MachineSchema>;

/** @returns the present boot of a directory node. @throws when it was never booted, naming the file. */
export async function readDirectoryMachine({ machine }: DirectoryNodeLayout): Promise<DirectoryMachine> {
  return MachineSchema.parse(JSON.parse(await readFile(machine, 'utf8')));
}

/** A directory node, as its daemon sees it. Who boots and reboots it watches for `rebootRequest`. */
export function directoryHost(layout: DirectoryNodeLayout): Host {
  return {
    root: layout.root,
    bootID: async () => {
      const { bootID, softBoot } = await readDirectoryMachine(layout);
      return bootIDOf(bootID, softBoot?.count ?? 0);
    },
    softBootSince: async () => (await readDirectoryMachine(layout)).softBoot?.since,
    // The kernel is the machine's on which the sandbox runs.
    kernelCommandLine: async () => undefined,
    bootSettled: async () => undefined,
    unlockUsr: async () => undefined,
    reboot: (reason, signal) => requestReboot(layout, { reason, softly: false }, signal),
    powerOff: (reason, signal) => requestReboot(layout, { reason, softly: false, off: true }, signal),
    rebootSoftly: (reason, signal) => requestReboot(layout, { reason, softly: true }, signal),
  };
}

const RequestSchema = z.object({
  reason: z.string(),
  softly: z.boolean(),
  /** The machine stays off. */
  off: z.literal(true).exactOptional(),
});

/** What a directory node's daemon asks who boots it for. */
export type RebootRequest = z.infer<typeof RequestSchema>;

async function requestReboot(
  { rebootRequest }: DirectoryNodeLayout,
  request: RebootRequest,
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  const temporary = `${rebootRequest}.${randomUUID()}`;
  await writeFile(temporary, `${JSON.stringify(request)}\n`);
  await rename(temporary, rebootRequest);
}

/** @returns what the daemon of a directory node asks for; undefined while it asks for nothing. */
export async function readRebootRequest({
  rebootRequest,
}: DirectoryNodeLayout): Promise<RebootRequest | undefined> {
  const text = await readFile(rebootRequest, 'utf8').catch(ignoreMissing);
  return text === undefined ? undefined : RequestSchema.parse(JSON.parse(text));
}
