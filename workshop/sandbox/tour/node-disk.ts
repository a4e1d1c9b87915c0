import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { resolveInRoot } from '../../../daemon/files/resolve-in-root.ts';
import { hostNamespaces } from '../../../daemon/host/systemd-host.ts';
import { osCommandRunner } from '../../../daemon/os/os-command.ts';
import { listDeployments } from '../../../daemon/os/ostree/deployments.ts';
import { directoryNodeLayout, readDirectoryMachine } from '../node/directory-host.ts';
import { readServiceRecords, type ServiceRecord } from '../node/service-recorder.ts';
import type { NodeKindName } from '../node-kind.ts';
import { readMachineRecord } from '../systemd-node/machine.ts';

/** Something that a service manager did. */
export type ServiceJob = Pick<ServiceRecord, 'action' | 'unit' | 'bootID'>;

/** A node as its disk shows it, whatever Shale reports about it. */
export interface NodeDisk {
  readonly bootID: string;
  readonly bootCount: number;
  /** Everything the service manager was asked for, oldest first. */
  readonly services: readonly ServiceJob[];
  readonly booted: DeploymentOnDisk;
  /** What the next boot takes: the booted one where nothing is staged. */
  readonly next: DeploymentOnDisk;
  /** @returns the text of a file of the running root; undefined when it doesn't exist. */
  running(file: string): Promise<string | undefined>;
}

export interface DeploymentOnDisk {
  readonly id: string;
  readonly image: string | undefined;
  readonly kernelArguments: readonly string[];
  /** @returns the text of a file as this deployment has it; undefined when it doesn't exist. */
  read(file: string): Promise<string | undefined>;
}

/** Looks at a node. @throws when it was never booted, or its sysroot isn't whole. */
export async function readNodeDisk(directory: string, kind: NodeKindName): Promise<NodeDisk> {
  const layout = directoryNodeLayout(directory);
  const machine = await readDirectoryMachine(layout);
  const leader = kind === 'systemd' ? (await readMachineRecord(directory)).leader : undefined;
  const root = leader === undefined ? layout.root : `/proc/${leader}/root`;
  const deployments = await listDeployments(layout.sysroot);
  const all = deployments.map((deployment) => ({
    id: deployment.id,
    image: deployment.image,
    kernelArguments: deployment.kernelArguments,
    read: (file: string) => readIn(deployment.directory, file),
  }));
  const booted = all[deployments.findIndex((deployment) => machine.deployment.endsWith(deployment.id))];
  const [next] = all;
  if (booted === undefined || next === undefined) {
    throw new Error(`${layout.sysroot}: the booted deployment ${machine.deployment} is not there`);
  }
  return {
    bootID: machine.bootID,
    bootCount: machine.bootCount,
    services: leader === undefined ? await readServiceRecords(layout) : await readServiceJobs(leader),
    booted,
    next,
    running: (file) => readIn(root, file),
  };
}

async function readIn(root: string, file: string): Promise<string | undefined> {
  const place = await resolveInRoot(root, file);
  if (place === undefined) return undefined;
  return readFile(place, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
}

const TIMEOUT_MS = 30_000;
/** Fields of systemd's messages when a job is done (systemd.journal-fields(7)). */
const Entry = z.object({ JOB_TYPE: z.enum(['restart', 'reload']), UNIT: z.string(), _BOOT_ID: z.string() });

/** A unit that was restarted or reloaded. */
export interface DoneJob {
  readonly action: 'restart' | 'reload';
  readonly unit: string;
  readonly bootID: string;
}

/** @returns what a machine's systemd restarted and reloaded in all its boots, oldest first, as its journal has it. */
async function readServiceJobs(leader: number): Promise<readonly DoneJob[]> {
  const run = osCommandRunner(hostNamespaces(leader));
  const output = await run(
    ['journalctl', '--no-pager', '--output=json', 'JOB_TYPE=restart', 'JOB_TYPE=reload', 'JOB_RESULT=done'],
    { timeoutMs: TIMEOUT_MS, signal: AbortSignal.timeout(TIMEOUT_MS) },
  );
  return output
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => Entry.parse(JSON.parse(line)))
    .map(({ JOB_TYPE: action, UNIT: unit, _BOOT_ID: bootID }) => ({ action, unit, bootID }));
}
