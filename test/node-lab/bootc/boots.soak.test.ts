/** bootc's own updates on a machine that its bootloader boots. */
import { expect, it } from 'vitest';
import { LAB_SERVICE } from '../lab-updates.ts';
import { machineUpdates } from '../machine-updates.ts';
import { beatingService, longestGap } from '../service-gap.ts';
import { describeMachine } from '../virtual-machine/describe-machine.ts';
import { BOOTC_FILES, noVirtualBootc } from './given-bootc.ts';
import { bootcOstreeSystem } from './ostree-system.ts';
import { virtualLayer } from './virtual-recipe.ts';

const STOCK = [...virtualLayer(), ...LAB_SERVICE, ...beatingService('beats.service')];
const OPTIONS = { name: 'bootc', missing: noVirtualBootc, system: bootcOstreeSystem(BOOTC_FILES) };

describeMachine(
  'the daemon of a machine that bootc keeps and its bootloader boots',
  STOCK,
  OPTIONS,
  (machine) => {
    const { sh } = machine;
    machineUpdates(machine, { tool: 'bootc', booted: () => sh('bootc status --booted') });

    /** @returns the record of the update, and for how long a service was away. */
    const update = async (config: string, softReboot?: 'softReboot') => {
      const image = await machine.updates.build(config);
      const { value, gapMs } = await longestGap(sh, async () => {
        await machine.updates.want(config, image, 'Disrupt', softReboot);
        return machine.arrive(config);
      });
      process.stderr.write(`${config}: ${gapMs} ms without the service, ${softReboot ?? 'full reboot'}\n`);
      return value.status?.lastUpdate;
    };

    it('leaves the kernel running where the pool allows it', async () => {
      const full = await update('rendered-7');
      expect(full).toMatchObject({ result: 'Succeeded' });
      expect(full?.softReboot).toBeUndefined();
      const soft = await update('rendered-8', 'softReboot');
      expect(soft).toMatchObject({ result: 'Succeeded', softReboot: true });
      expect(soft?.bootIDAfter).toBe(`${soft?.bootIDBefore}+1`);
      expect(await sh('systemctl show --property=SoftRebootsCount --value')).toBe('1');
    });
  },
);
