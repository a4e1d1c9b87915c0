import { z } from 'zod';
import { hostNamespaces } from '../../../daemon/host/systemd-host.ts';
import { osCommandRunner } from '../../../daemon/os/os-command.ts';

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
export async function readServiceJobs(leader: number): Promise<readonly DoneJob[]> {
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
