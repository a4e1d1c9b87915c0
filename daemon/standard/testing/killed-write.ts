import path from 'node:path';
import { chpasswd } from '../../host/chpasswd.ts';
import { noLabels } from '../../host/selinux-labels.ts';
import { osCommandRunner } from '../../os/os-command.ts';
import { writeConfig } from '../write-config.ts';
import { first, second } from './written-tree.ts';

/**
 * A process that dies by SIGKILL before a step of a write.
 *
 *   node killed-write.ts <root> <number of steps to take before>
 */
const [root = '', steps = ''] = process.argv.slice(2);
let left = Number(steps);
await writeConfig(
  {
    root,
    stateDir: path.join(root, 'var/lib/shale'),
    setPasswords: chpasswd(osCommandRunner()),
    relabel: noLabels,
  },
  { from: first, to: second },
  {
    signal: AbortSignal.timeout(30_000),
    beforeStep: () => {
      if (left === 0) process.kill(process.pid, 'SIGKILL');
      left -= 1;
    },
  },
);
