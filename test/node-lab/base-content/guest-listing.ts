import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { bundlePrograms } from '../../../container/bundle.ts';
import { shellWords } from '../../../daemon/os/os-command.ts';
import type { Listing } from '../../differential/listing.ts';
import { DAEMON_SERVICE } from '../virtual-machine/stock-layer.ts';
import type { VirtualMachine } from '../virtual-machine/virtual-machine.ts';

/** In software emulation: it reads every file. */
const LIST_MS = 900_000;
/** Of Shale's image, beside which the daemon has the host's root. */
const NODE_OF_DAEMON = '/shale/node_modules/node/bin/node';
const HOST = '/host';

/** @returns the listing of a virtual machine, made among the mounts of its daemon, by that one's Node. */
export async function listGuest({ sh }: Pick<VirtualMachine, 'sh'>): Promise<Listing> {
  const program = Buffer.from(await printListing()).toString('base64');
  const list = shellWords([NODE_OF_DAEMON, '--input-type=module', '-', HOST]);
  const pid = `$(systemctl show --property=MainPID --value ${DAEMON_SERVICE})`;
  const printed = await sh(
    `echo ${program} | base64 -d | nsenter --target ${pid} --mount --root ${list}`,
    LIST_MS,
  );
  return new Map(JSON.parse(printed));
}

/** @returns the program as one file. */
async function printListing(): Promise<string> {
  const directory = await mkdtemp(path.join(tmpdir(), 'shale-listing-'));
  try {
    await bundlePrograms({ print: 'test/node-lab/base-content/print-listing.ts' }, directory);
    return await readFile(path.join(directory, 'print.mjs'), 'utf8');
  } finally {
    await rm(directory, { recursive: true });
  }
}
