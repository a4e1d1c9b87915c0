import { bootedUpdates, UPDATED_SERVICE } from './virtual-machine/booted-updates.ts';
import { describeMachine } from './virtual-machine/describe-machine.ts';
import { VIRTUAL_MACHINE_LAYER } from './virtual-machine/stock-layer.ts';

const STOCK = [...VIRTUAL_MACHINE_LAYER, ...UPDATED_SERVICE];

describeMachine('the daemon of a machine that its bootloader boots', STOCK, {}, (machine) =>
  bootedUpdates(machine, "ostree admin status | sed -n '/^\\*/,/^ *origin/p'"),
);
