import { deadline } from '../fixtures/patience.ts';
import { describeLabNode } from './describe-lab-node.ts';
import { type LabSystem, UPDATE_MS } from './lab-node.ts';
import { LAB_SERVICE } from './lab-updates.ts';
import { machineUpdates } from './machine-updates.ts';

/**
 * A daemon's updates of one machine. The image tool, ostree and systemd are real.
 *
 * @param tool its name. @param system what it installs and updates. @param missing why it can't be had here, if it
 *   can't.
 */
export function daemonOfTool(tool: string, system: () => LabSystem, missing: string | undefined): void {
  const options = () => ({ system: system() });
  const node = { stock: LAB_SERVICE, options, missing, limitMs: UPDATE_MS + 120_000 };
  describeLabNode(`the daemon of a machine that ${tool} keeps`, node, (machine) => {
    const status = () => machine.lab.node.backend.status(deadline(60_000));
    machineUpdates(machine, { tool, booted: async () => (await status()).booted.image ?? '' });
  });
}
