/** Packages layered by rpm-ostree itself from a repository of RPMs: there after the boot, changed, gone. */
import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from 'vitest';
import type { DigestedPullspec } from '../../../api/references.ts';
import type { ExtraPackages, StageOptions } from '../../../daemon/os/backend.ts';
import { rpmOstree } from '../../../daemon/os/rpm-ostree/rpm-ostree.ts';
import { noPackages, osPackages } from '../../../machineconfig/os-packages.ts';
import { CHRONY } from '../../fixtures/node-configs.ts';
import { deadline } from '../../fixtures/patience.ts';
import { layerFile } from '../../fixtures/test-node.ts';
import { describeToolMachine } from '../describe-tool-machine.ts';
import { noRpmOstree, RPM_OSTREE } from './given-rpm-ostree.ts';
import { rpmOstreeSystem } from './rpm-ostree-system.ts';

const STEP_MS = 300_000;
const usbguard = osPackages({ extensions: ['usbguard'], kernelType: 'default' });
const sysstat = osPackages({ extensions: ['sysstat'], kernelType: 'default' });

/** The tests are steps of one machine's life. */
describeToolMachine(
  'packages on a machine of rpm-ostree',
  { system: () => rpmOstreeSystem(RPM_OSTREE), imageTool: rpmOstree, missing: noRpmOstree, limitMs: STEP_MS },
  (on) => {
    const having = (extraPackages: ExtraPackages): StageOptions => ({
      extraKernelArguments: { remove: [], add: [] },
      extraPackages,
      signal: deadline(STEP_MS),
    });
    const stage = (image: DigestedPullspec, extraPackages: ExtraPackages) =>
      on.machine.backend.stage(image, having(extraPackages));
    const reboot = async () => {
      await on.machine.backend.finalizeStaged(new Map(), deadline(STEP_MS));
      await on.machine.shutDownAndBoot();
    };
    const status = () => on.machine.backend.status(deadline(STEP_MS));
    /** What of the lab's repository is there. */
    const installed = async () => {
      const names = await readdir(path.join(on.machine.root, 'usr/lib/packages'));
      return names.filter((name) => !name.startsWith('lab-')).sort();
    };

    it('leave nothing behind when they can’t be had', async () => {
      const unknown = { installed: ['no-such-package'], removed: [] };
      await expect(stage(on.machine.stock, { remove: noPackages, add: unknown })).rejects.toThrow(
        'Packages not found: no-such-package',
      );
      expect((await status()).staged).toBeUndefined();
    });

    it('are not booted before they are granted', async () => {
      const htop = { installed: ['htop'], removed: [] };
      await on.machine.backend.fetch(on.machine.stock, having({ remove: noPackages, add: htop }));
      expect((await status()).staged).toBeUndefined();
      await on.machine.shutDownAndBoot();
      expect(await installed()).toEqual([]);
    });

    it('are there after the reboot', async () => {
      const first = await stage(on.machine.stock, { remove: noPackages, add: usbguard });
      expect((await status()).staged?.id).toBe(first.id);
      expect((await stage(on.machine.stock, { remove: noPackages, add: usbguard })).id).toBe(first.id);
      await reboot();
      expect(await installed()).toEqual(['usbguard']);
      expect((await status()).booted.image).toBe(on.machine.stock);
    });

    it('change with the image', async () => {
      const image = await on.machine.addImage([layerFile(CHRONY, 'server a\n')]);
      await stage(image, { remove: usbguard, add: sysstat });
      await reboot();
      expect((await status()).booted.image).toBe(image);
      expect(await installed()).toEqual(['sysstat']);
    });

    it('make way for another package of the image, which comes back with them', async () => {
      const { image = on.machine.stock } = (await status()).booted;
      const swapped = { installed: ['htop'], removed: ['lab-extra'] };
      const extra = () => existsSync(path.join(on.machine.root, 'usr/lib/packages/lab-extra'));
      await stage(image, { remove: sysstat, add: swapped });
      await reboot();
      expect([await installed(), extra()]).toEqual([['htop'], false]);
      await stage(image, { remove: swapped, add: noPackages });
      await reboot();
      expect([await installed(), extra()]).toEqual([[], true]);
    });
  },
);
