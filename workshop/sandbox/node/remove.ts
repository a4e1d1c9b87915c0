import { readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { osCommandRunner } from '../../../daemon/os/os-command.ts';
import { directoryNodeLayout } from './directory-host.ts';

const TIMEOUT_MS = 60_000;

/** Deletes a directory node. ostree makes deployments immutable (chattr(1)), so a plain deletion would fail. */
export async function removeNode(dir: string, signal = AbortSignal.timeout(TIMEOUT_MS)): Promise<void> {
  const deploy = path.join(directoryNodeLayout(dir).sysroot, 'ostree/deploy');
  const deployments: string[] = [];
  for (const os of await readdir(deploy).catch(() => [])) {
    for (const name of await readdir(path.join(deploy, os, 'deploy')).catch(() => [])) {
      if (!name.endsWith('.origin')) deployments.push(path.join(deploy, os, 'deploy', name));
    }
  }
  if (deployments.length > 0) {
    // File systems without that attribute refuse it, and then there is nothing to take away.
    await osCommandRunner()(['chattr', '-i', ...deployments], { timeoutMs: TIMEOUT_MS, signal }).catch(
      () => undefined,
    );
  }
  await rm(dir, { recursive: true, force: true });
}
