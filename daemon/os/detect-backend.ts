import { access } from 'node:fs/promises';
import path from 'node:path';
import { bootcObstacle, bootcStatus } from './bootc/status.ts';
import { type BackendName, chooseBackend, type FoundTools } from './choose-backend.ts';
import type { RunOsCommand } from './os-command.ts';

/** The host has nothing that Shale could keep its operating system by. Nothing was touched. */
export class UnsupportedHostError extends Error {
  override readonly name = 'UnsupportedHostError';
}

export interface HostTools {
  /** The running root, as the daemon sees it. */
  readonly root: string;
  /** Runs commands on the host. */
  readonly run: RunOsCommand;
  /** By the admin's word; found out where there is none. */
  readonly wanted?: BackendName;
  /** Whether it has to install packages, if the host has one that can. */
  readonly forPackages?: boolean;
}

/**
 * Looks which tool keeps the host's operating system.
 *
 * @throws UnsupportedHostError when none does, OsCommandError and ToolStatusError when bootc can't say.
 */
export async function detectBackend(host: HostTools, signal: AbortSignal): Promise<BackendName> {
  const choice = chooseBackend(await findTools(host, signal), host);
  if (choice.kind === 'none') throw new UnsupportedHostError(choice.why);
  return choice.name;
}

async function findTools({ root, run }: HostTools, signal: AbortSignal): Promise<FoundTools> {
  const has = (place: string) =>
    access(path.join(root, place)).then(
      () => true,
      () => false,
    );
  const found = {
    isBootedByOstree: await has('run/ostree-booted'),
    hasRpmOstree: await has('usr/bin/rpm-ostree'),
    hasOstree: await has('usr/bin/ostree'),
  };
  if (!(await has('usr/bin/bootc'))) return found;
  const host = await bootcStatus(run, signal);
  const obstacle = bootcObstacle(host);
  const isOfImage = host.status.type === 'bootcHost';
  return { ...found, bootc: { isOfImage, ...(obstacle === undefined ? {} : { obstacle }) } };
}
