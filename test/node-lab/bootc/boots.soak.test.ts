import { expect, it } from 'vitest';
import { isAt } from '../../fixtures/node-configs.ts';
import { beatingService, longestGap } from '../service-gap.ts';
import { bootedUpdates, UPDATED_SERVICE } from '../virtual-machine/booted-updates.ts';
import { describeMachine } from '../virtual-machine/describe-machine.ts';
import { BOOTC_FILES, noVirtualBootc } from './given-bootc.ts';
import { bootcOstreeSystem } from './ostree-system.ts';
import { virtualLayer } from './virtual-recipe.ts';

const STOCK = [...virtualLayer(), ...UPDATED_SERVICE, ...beatingService('beats.service')];
const OPTIONS = { name: 'bootc', missing: noVirtualBootc, system: bootcOstreeSystem(BOOTC_FILES) };

describeMachine(
  'the daemon of a machine that bootc keeps and its bootloader boots',
  STOCK,
  OPTIONS,
  (machine) => {
    const { sh } = machine;
    bootedUpdates(machine, 'bootc status --booted');

    /** @returns the record of the update, and for how long a service was away. */
    const update = async (config: string, softReboot?: 'softReboot') => {
      const image = await machine.updates.build(config);
      const { value, gapMs } = await longestGap(sh, async () => {
        await machine.updates.want(config, image, 'Disrupt', softReboot);
        return machine.lab.timed(`until ${config} is applied`, () => machine.lab.until(config, isAt(config)));
      });
      process.stderr.write(`${config}: ${gapMs} ms without the service, ${softReboot ?? 'full reboot'}\n`);
      return value.status?.lastUpdate;
    };

    it('leaves the kernel running where the pool allows it, and a service is away for less than by a reboot', async () => {
      const full = await update('rendered-6');
      expect(full).toMatchObject({ result: 'Succeeded' });
      expect(full?.softReboot).toBeUndefined();
      const soft = await update('rendered-7', 'softReboot');
      expect(soft).toMatchObject({ result: 'Succeeded', softReboot: true });
      expect(soft?.bootIDAfter).toBe(`${soft?.bootIDBefore}+1`);
      expect(await sh('systemctl show --property=SoftRebootsCount --value')).toBe('1');
    });
  },
);
