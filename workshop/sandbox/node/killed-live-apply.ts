import { directoryNode } from '../../../daemon/host/directory-node.ts';
import { noLabels } from '../../../daemon/host/selinux-labels.ts';
import { applyLive } from '../../../daemon/live/live-apply.ts';
import { memorySource } from '../../../daemon/os/ostree/memory-source.ts';

/**
 * A process that dies by SIGKILL before a step of a live apply, for the test beside it.
 *
 *   node killed-live-apply.ts <node's directory> <number of steps to take before>
 */
const [dir = '', steps = ''] = process.argv.slice(2);
const { host, services, backend } = directoryNode(dir, memorySource(new Map()));
const signal = AbortSignal.timeout(30_000);
const { booted, staged } = await backend.status(signal);
if (staged === undefined) throw new Error('nothing is staged');
let left = Number(steps);
await applyLive({
  host,
  services,
  relabel: noLabels,
  booted,
  staged,
  signal,
  beforeStep: async () => {
    if (left === 0) process.kill(process.pid, 'SIGKILL');
    left -= 1;
  },
});
