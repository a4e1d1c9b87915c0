/** The daemon's course on bootc without ostree, on a machine that its bootloader boots. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { MachineConfigNode } from '../../../api/machine-config-node.ts';
import { shellWords } from '../../../daemon/os/os-command.ts';
import { CACHE } from '../../../workshop/sandbox/layout.ts';
import { ensureRootfsArchive } from '../../../workshop/sandbox/systemd-node/rootfs-archive.ts';
import { degraded, isRolledBack } from '../../fixtures/node-configs.ts';
import { deadline } from '../../fixtures/patience.ts';
import {
  CONFIG,
  FAILED_CHECK,
  FAILING_CHECK,
  kernelArgument,
  LAB_SERVICE,
  link,
  RESTART,
  text,
} from '../lab-updates.ts';
import { beatingService, longestGap } from '../service-gap.ts';
import { SETUP_MS, UPDATE_MS } from '../virtual-machine/boot-lab.ts';
import { describeMachine } from '../virtual-machine/describe-machine.ts';
import { DAEMON_SERVICE } from '../virtual-machine/stock-layer.ts';
import { composefsSystem } from './composefs-system.ts';
import { BOOTC_FILES, noVirtualBootc } from './given-bootc.ts';
import { unifiedKernelImage } from './unified-kernel-image.ts';
import { virtualLayer, virtualRecipe, withoutBootPartition } from './virtual-recipe.ts';

/** Far more than a daemon takes from the boot on. */
const DAEMON_LIMIT_S = 180;
const STOCK = [
  ...withoutBootPartition(virtualLayer('--daemon-limit', String(DAEMON_LIMIT_S))),
  ...LAB_SERVICE,
  ...beatingService('beats.service'),
];
const POLL_MS = 1000;
/** What bootc has staged. */
const NOTE = '/run/composefs/staged-deployment';
/** As the firmware's file system is when nobody has had it written: names without content. */
const LOSE_ENTRIES = 'truncate --size=0 /boot/loader/entries.staged/*; sync';
const LOSE_POWER = 'echo b > /proc/sysrq-trigger';
const LIVE = '/usr/share/lab';
/** Time between two kills of a daemon: it starts again at once, and each has more time than the one before. */
const KILL_AFTER_S = [2, 4, 7, 11, 16, 22];

/**
 * The tests are steps of one machine's life: each begins where the one before ended. bootc, its part of the initramfs,
 * systemd, systemd-boot, the firmware's file system and fs-verity are real. Every reboot goes through the firmware.
 */
describeMachine(
  'the daemon of a machine that bootc keeps without ostree',
  STOCK,
  { name: 'composefs', missing: noVirtualBootc, system: composefsSystem(BOOTC_FILES) },
  (machine) => {
    const { sh, bootID, kernelArguments, arrive } = machine;
    const status = async () => JSON.parse(await sh('bootc status --format=json --format-version=1')).status;
    const booted = async () => (await status()).booted.image.image.image;
    const timed = <T>(what: string, work: () => Promise<T>) => machine.lab.timed(what, work);
    const reboot = async (how: string) => {
      const before = await bootID();
      await sh(`systemd-run --on-active=1 ${shellWords(['sh', '-c', how])}`);
      await timed(how, () => machine.lab.machine.up(before));
    };
    /** @returns what `ask` finds, once it does. */
    const poll = async <T>(ask: () => Promise<T | undefined>): Promise<T> => {
      const until = deadline(UPDATE_MS);
      for (;;) {
        const found = await ask();
        if (found !== undefined) return found;
        await delay(POLL_MS, undefined, { signal: until });
      }
    };
    /**
     * What the daemon reports may be of the boot before. @returns `bootc status` once something is staged for later.
     */
    const untilLocked = async () => {
      // To ask bootc itself each time would take the processor from what is waited for.
      const isNoted = async () =>
        (await sh(`cat ${NOTE} 2>&1 || true`)).includes('"finalization_locked":true');
      await poll(async () => (await isNoted()) || undefined);
      return status();
    };
    /** @returns the booted image, once the daemon has taken away what keeps bootc from reporting it. */
    const untilReported = () => poll(() => booted().catch(() => undefined));
    const hasReason = (reason: string) => (object: MachineConfigNode) =>
      object.status?.conditions?.some((condition) => condition.reason === reason) === true;

    it('is in standard mode first, with what can’t be had there refused beforehand', async () => {
      await machine.updates.render('rendered-0', 'refused\n', ['extra=1']);
      await machine.updates.wantStandard('rendered-0');
      const { status: told } = await machine.lab.until('the refusal', hasReason('PrepareRefused'));
      expect(told?.osBackend).toMatchObject({
        name: 'bootc',
        appliesLive: false,
        setsKernelArguments: false,
      });
      await machine.updates.render('rendered-1', 'standard\n');
      await machine.updates.wantStandard('rendered-1');
      expect((await arrive('rendered-1')).status?.mode).toBe('Standard');
      expect(await sh(`cat ${CONFIG}`)).toBe('standard');
    });

    it('boots what it runs without a grant, after an orderly reboot and after a loss of power', async () => {
      const image = await machine.updates.build('rendered-2');
      await machine.updates.assign('rendered-2', image);
      for (const how of ['systemctl reboot', LOSE_POWER, `${LOSE_ENTRIES}; ${LOSE_POWER}`]) {
        expect(await timed('until it is locked', untilLocked)).toMatchObject({
          staged: { image: { image: { image } } },
          rollbackQueued: false,
        });
        await reboot(how);
        expect(await untilReported()).toBe(machine.lab.stock);
        expect(await sh(`cat ${CONFIG}`)).toBe('standard');
      }
    });

    it('takes back an image that boots by a unified kernel image, and stays as it is', async () => {
      const { rootfs } = await ensureRootfsArchive(
        CACHE,
        deadline(SETUP_MS),
        undefined,
        virtualRecipe(BOOTC_FILES),
      );
      const imageFor = async (digest: string) =>
        machine.updates.build('rendered-uki', undefined, [
          await unifiedKernelImage(rootfs, `composefs=${digest} rw`),
        ]);
      const saying = (what: RegExp) => (object: MachineConfigNode) =>
        object.status?.conditions?.some(({ message }) => what.test(message ?? '')) === true;
      const wrong = /UKI has the wrong composefs= parameter \(is '0+', should be '(?<digest>[0-9a-f]+)'\)/;
      // As one that has had a layer put onto it.
      await machine.updates.assign('rendered-uki', await imageFor('0'.repeat(128)));
      const { status: told } = await machine.lab.until('the refusal by bootc', saying(wrong));
      const { digest = '' } = wrong.exec(JSON.stringify(told?.conditions))?.groups ?? {};
      await machine.updates.assign('rendered-uki', await imageFor(digest));
      await machine.lab.until(
        'the refusal',
        saying(/Conflicting boot types.*expected an image that boots as/s),
      );
      expect(await booted()).toBe(machine.lab.stock);
      expect((await status()).staged).toBeNull();
    });

    it('goes into layering, with its /etc and what the admin had changed there', async () => {
      await sh('echo edited here > /etc/motd');
      const image = await machine.updates.build('rendered-2');
      await machine.updates.want('rendered-2', image, 'Disrupt');
      const { status: reported } = await arrive('rendered-2');
      expect(reported).toMatchObject({ mode: 'Layered', lastUpdate: { result: 'Succeeded' } });
      expect(await booted()).toBe(image);
      expect(await sh(`cat ${CONFIG} /etc/motd`)).toBe('rendered-2\nedited here');
    });

    it('leaves the kernel running where the pool allows it', async () => {
      const image = await machine.updates.build('rendered-soft', undefined, [text(LIVE, 'soft\n')]);
      const { value, gapMs } = await longestGap(sh, async () => {
        await machine.updates.want('rendered-soft', image, 'Disrupt', 'softReboot');
        return arrive('rendered-soft');
      });
      process.stderr.write(`${gapMs} ms without a service, soft reboot\n`);
      const update = value.status?.lastUpdate;
      expect(update).toMatchObject({ result: 'Succeeded', softReboot: true });
      expect(update?.bootIDAfter).toBe(`${update?.bootIDBefore}+1`);
      expect(await booted()).toBe(image);
      expect(await sh(`cat ${CONFIG} /etc/motd ${LIVE} /run/shale/image${LIVE}`)).toBe(
        'rendered-soft\nedited here\nsoft\nsoft',
      );
    });

    it('reboots for what other hosts take live, and for kernel arguments', async () => {
      const before = await bootID();
      const from = { config: 'rendered-soft', actions: [RESTART] };
      const more = [text(LIVE, 'live\n'), kernelArgument('lab.karg=1')];
      const image = await machine.updates.build('rendered-3', from, more);
      const { value, gapMs } = await longestGap(sh, async () => {
        await machine.updates.want('rendered-3', image, 'Disrupt');
        return arrive('rendered-3');
      });
      process.stderr.write(`${gapMs} ms without a service, full reboot\n`);
      const { status: reported } = value;
      expect(reported?.lastUpdate?.actions).toEqual([{ type: 'Reboot' }]);
      expect(await bootID()).not.toBe(before);
      expect(await kernelArguments()).toContain('lab.karg=1');
      expect(await sh(`cat ${CONFIG} /etc/motd ${LIVE}`)).toBe('rendered-3\nedited here\nlive');
    });

    it('rolls back from an image whose health check fails', async () => {
      const image = await machine.updates.build('rendered-4', undefined, [
        kernelArgument('lab.karg=2'),
        FAILING_CHECK,
      ]);
      await machine.updates.want('rendered-4', image, 'Disrupt');
      const { status: reported } = await timed('until rendered-4 is rolled back', () =>
        machine.lab.until('the rollback', isRolledBack),
      );
      expect(reported?.lastUpdate?.message).toBe(FAILED_CHECK);
      expect(await kernelArguments()).toContain('lab.karg=1');
      expect(await kernelArguments()).not.toContain('lab.karg=2');
      expect(await sh(`cat ${CONFIG} /etc/motd; test -e ${FAILING_CHECK.path} || echo no check`)).toBe(
        'rendered-3\nedited here\nno check',
      );
    });

    it('rolls back by itself from an image in which no daemon starts', async () => {
      const masked = link(`/etc/systemd/system/${DAEMON_SERVICE}`, '/dev/null');
      const image = await machine.updates.build('rendered-5', undefined, [masked]);
      await machine.updates.want('rendered-5', image, 'Disrupt');
      const back = await timed('until rendered-5 is rolled back by the boot watchdog', () =>
        machine.lab.until(
          'the rollback',
          (object) =>
            object.status?.lastUpdate?.config === 'rendered-5' && degraded(object)?.reason !== undefined,
        ),
      );
      expect(degraded(back)?.message).toContain('the host rolled back by itself');
      expect(await kernelArguments()).toContain('lab.karg=1');
      expect(await sh(`cat ${CONFIG} /etc/motd`)).toBe('rendered-3\nedited here');
    });

    it('ends where it was going when its daemon is killed again and again', async () => {
      const image = await machine.updates.build('rendered-6');
      await machine.updates.want('rendered-6', image, 'Disrupt');
      for (const seconds of KILL_AFTER_S) {
        await delay(seconds * 1000);
        await sh(`systemctl kill --signal=KILL ${DAEMON_SERVICE}`).catch(() => undefined);
      }
      await arrive('rendered-6');
      expect(await booted()).toBe(image);
      expect(await sh(`cat ${CONFIG} /etc/motd; test -e ${LIVE} || echo gone`)).toBe(
        'rendered-6\nedited here\ngone',
      );
    });

    it('leaves layering for the stock image, with the files of its config', async () => {
      await machine.updates.render('rendered-7', 'standard again\n');
      await machine.updates.wantStandard('rendered-7');
      const { status: reported } = await arrive('rendered-7');
      expect(reported).toMatchObject({ mode: 'Standard', baseImage: machine.lab.stock });
      expect(await booted()).toBe(machine.lab.stock);
      expect(await kernelArguments()).not.toContain('lab.karg=1');
      expect(await sh(`cat ${CONFIG} /etc/motd`)).toBe('standard again\nedited here');
    });
  },
);
