import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { kernelBootID } from '../../daemon/host/userspace-boot.ts';
import type { LayerEntry } from '../../image/layer/entry.ts';
import { isAt } from '../fixtures/node-configs.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { FIRST_TIME_MS } from './lab.ts';
import { type LabNode, startLabNode, UPDATE_MS } from './lab-node.ts';
import { CONFIG, kernelArgument, SERVICE, text, type Updates, updatesOf } from './lab-updates.ts';
import { COMING_DEBIAN, noComingDebian } from './prepared-root.ts';
import { beatingService, longestGap } from './service-gap.ts';

const PREPARE_ROOT = '/usr/lib/ostree/prepare-root.conf';
const SERVICES = beatingService(SERVICE);
/** It is installed by this machine's ostree, which may be too old to make a composefs of it. */
const STOCK = [...SERVICES, text(PREPARE_ROOT, '[composefs]\nenabled = maybe\n')];
const WITH_COMPOSEFS = [...SERVICES, text(PREPARE_ROOT, '[composefs]\nenabled = yes\n')];

const title = 'soft reboots of a machine with ostree alone';

/** The tests are steps of one machine's life: each begins where the one before ended. ostree and systemd are real. */
describe.skipIf(noComingDebian !== undefined)(
  noComingDebian === undefined ? title : `${title} (skipped: ${noComingDebian})`,
  { timeout: patience(UPDATE_MS) },
  () => {
    let lab: LabNode;
    let updates: Updates;

    beforeAll(async () => {
      lab = await startLabNode(STOCK, { system: COMING_DEBIAN });
      updates = updatesOf(lab, WITH_COMPOSEFS);
    }, patience(FIRST_TIME_MS));
    afterEach(async ({ task }) => {
      if (task.result?.state === 'fail') process.stderr.write(await lab.log());
    });
    afterAll(() => lab?.[Symbol.asyncDispose](), patience(60_000));

    /** @returns the record of the update to an image that asks for a composefs. */
    const run = async (config: string, softReboot?: 'softReboot', more: readonly LayerEntry[] = []) => {
      const image = await updates.build(config, undefined, more);
      const { value, gapMs } = await longestGap(lab.sh, async () => {
        await updates.want(config, image, 'Disrupt', softReboot);
        return lab.until(config, isAt(config));
      });
      const { status } = value;
      expect(await lab.sh(`cat ${CONFIG}`)).toBe(config);
      expect((await lab.node.backend.status(deadline(30_000))).booted.image).toBe(image);
      expect(await lab.sh('findmnt --noheadings --output=SOURCE /')).toBe('composefs');
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
      expect(await lab.sh('systemctl show --property=SoftRebootsCount --value')).toBe('1');
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
