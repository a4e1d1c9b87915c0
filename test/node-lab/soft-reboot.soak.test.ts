/** systemd's soft reboot of a real machine: which kernel and which root run afterwards. */
import { expect, it } from 'vitest';
import { kernelBootID } from '../../api/boot-id.ts';
import type { LayerEntry } from '../../image/layer/entry.ts';
import { deadline } from '../fixtures/patience.ts';
import { describeLabNode } from './describe-lab-node.ts';
import { CONFIG, kernelArgument, SERVICE, text } from './lab-updates.ts';
import { COMING_DEBIAN, noComingDebian } from './prepared-root.ts';
import { beatingService, longestGap } from './service-gap.ts';

const PREPARE_ROOT = '/usr/lib/ostree/prepare-root.conf';
const SERVICES = beatingService(SERVICE);
/** It is installed by this machine's ostree, which may be too old to make a composefs of it. */
const STOCK = [...SERVICES, text(PREPARE_ROOT, '[composefs]\nenabled = maybe\n')];
const WITH_COMPOSEFS = [...SERVICES, text(PREPARE_ROOT, '[composefs]\nenabled = yes\n')];

/** The tests are steps of one machine's life: each begins where the one before ended. ostree and systemd are real. */
describeLabNode(
  'soft reboots of a machine with ostree alone',
  {
    stock: STOCK,
    images: WITH_COMPOSEFS,
    options: () => ({ system: COMING_DEBIAN }),
    missing: noComingDebian,
  },
  (machine) => {
    /** @returns the record of the update to an image that asks for a composefs. */
    const run = async (config: string, softReboot?: 'softReboot', more: readonly LayerEntry[] = []) => {
      const image = await machine.updates.build(config, undefined, more);
      const { value, gapMs } = await longestGap(machine.sh, async () => {
        await machine.updates.want(config, image, 'Disrupt', softReboot);
        return machine.arrive(config);
      });
      const { status } = value;
      expect(await machine.sh(`cat ${CONFIG}`)).toBe(config);
      expect((await machine.lab.node.backend.status(deadline(30_000))).booted.image).toBe(image);
      expect(await machine.sh('findmnt --noheadings --output=SOURCE /')).toBe('composefs');
      process.stderr.write(`${config}: ${gapMs} ms without the service, ${status?.lastUpdate?.source}\n`);
      return status?.lastUpdate;
    };
    it('reboots fully from a root that is no composefs', async () => {
      const update = await run('rendered-1', 'softReboot');
      expect(update).toMatchObject({ result: 'Succeeded' });
      expect(update?.softReboot).toBeUndefined();
      expect(update?.source).toContain('no soft reboot: the host does not report');
    });

    it('leaves the kernel running between two images that have the same one', async () => {
      const update = await run('rendered-2', 'softReboot');
      expect(update).toMatchObject({ result: 'Succeeded', softReboot: true });
      expect(update?.bootIDAfter).toBe(`${update?.bootIDBefore}+1`);
      expect(await machine.sh('systemctl show --property=SoftRebootsCount --value')).toBe('1');
    });

    it('does so again from a root that a soft reboot has booted', async () => {
      const update = await run('rendered-3', 'softReboot');
      expect(update).toMatchObject({ result: 'Succeeded', softReboot: true });
      expect(update?.bootIDAfter).toBe(`${kernelBootID(update?.bootIDBefore ?? '')}+2`);
    });

    it('reboots fully where kernel arguments change, and where the pool does not allow it', async () => {
      const withArgument = await run('rendered-4', 'softReboot', [kernelArgument('nosmt')]);
      expect(withArgument?.softReboot).toBeUndefined();
      expect(withArgument?.source).toContain('no soft reboot: kernel arguments change');
      const notAllowed = await run('rendered-5', undefined, [kernelArgument('nosmt')]);
      expect(notAllowed).toMatchObject({ result: 'Succeeded' });
      expect(notAllowed?.softReboot).toBeUndefined();
      expect(notAllowed?.bootIDAfter).not.toContain('+');
    });
  },
);
