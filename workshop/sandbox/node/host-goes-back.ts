import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { readMark } from '../../../daemon/boot-watchdog/mark.ts';
import { watchdogPaths } from '../../../daemon/boot-watchdog/watchdog-files.ts';
import { directoryHost, directoryNodeLayout } from '../../../daemon/host/directory-host.ts';
import type { NodePorts } from '../../../daemon/host/node-ports.ts';
import { osCommandRunner } from '../../../daemon/os/os-command.ts';
import { readManagedPaths } from '../../../daemon/records/managed-paths.ts';
import { bootNode } from './boot.ts';

const COMMAND_MS = 60_000;

/**
 * Boots a directory node's target and goes back from it, as the watchdog of a host does where no daemon comes up: in such
 * a node nothing runs that could.
 *
 * @param dir of a node whose daemon has asked for a reboot into another deployment.
 * @returns once the former deployment is booted again.
 */
export async function hostGoesBack(dir: string, { backend }: Pick<NodePorts, 'backend'>): Promise<void> {
  const signal = AbortSignal.timeout(COMMAND_MS);
  const layout = directoryNodeLayout(dir);
  const { staged } = await backend.status(signal);
  if (staged === undefined) throw new Error(`${dir}: no other deployment is to be booted`);
  const keep = [...(await readManagedPaths(layout.root)).keys()];
  const wayBack = await backend.wayBack(keep, signal);
  await bootNode(dir);
  await osCommandRunner()(['sh', '-c', `back() {\n${wayBack}\n}\nback`], { timeoutMs: COMMAND_MS, signal });
  const mark = path.join(layout.root, watchdogPaths.mark);
  const bootID = await directoryHost(layout).bootID();
  await mkdir(path.dirname(mark), { recursive: true });
  await writeFile(
    mark,
    `deployment ${staged.id}\nbootID ${bootID}\nreason KubeletNeverStarted\nunit kubelet.service\nlimitSeconds 900\n\n`,
  );
  if ((await readMark(layout.root)) === undefined) throw new Error(`${mark}: is no mark`);
  await bootNode(dir);
}
