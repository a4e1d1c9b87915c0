/** The daemon's updates on a virtual machine that a bootloader boots; containers have none. */
import { LAB_SERVICE } from './lab-updates.ts';
import { machineUpdates } from './machine-updates.ts';
import { describeMachine } from './virtual-machine/describe-machine.ts';
import { VIRTUAL_MACHINE_LAYER } from './virtual-machine/stock-layer.ts';

const STOCK = [...VIRTUAL_MACHINE_LAYER, ...LAB_SERVICE];

describeMachine('the daemon of a machine that its bootloader boots', STOCK, {}, (machine) =>
  machineUpdates(machine, {
    tool: 'ostree',
    booted: () => machine.sh("ostree admin status | sed -n '/^\\*/,/^ *origin/p'"),
  }),
);
