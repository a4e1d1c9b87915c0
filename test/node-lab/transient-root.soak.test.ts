/** Roots that forget at each boot, booted: what is left of /etc and /var. */
import { expect, it } from 'vitest';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import { degraded, isAt } from '../fixtures/node-configs.ts';
import { deadline } from '../fixtures/patience.ts';
import { describeLabNode } from './describe-lab-node.ts';
import { CONFIG, text, updatesOf } from './lab-updates.ts';
import { COMING_DEBIAN, noComingDebian } from './prepared-root.ts';

const prepareRoot = (content: string) => text('/usr/lib/ostree/prepare-root.conf', content);
/** As for soft reboots: this machine's ostree installs it, without a composefs. */
const STOCK = [prepareRoot('[composefs]\nenabled = maybe\n')];
const COMPOSEFS = '[composefs]\nenabled = yes\n';
const TRANSIENT = [prepareRoot(`${COMPOSEFS}[root]\ntransient = true\n`)];
/** Without a composefs ostree looks at it only where /sysroot is read-only. */
const TRANSIENT_ETC = [prepareRoot('[sysroot]\nreadonly = true\n[etc]\ntransient = true\n')];
const TOOL = '/usr/share/lab/tool';

/** The tests are steps of one machine's life: each begins where the one before ended. ostree and systemd are real. */
describeLabNode(
  'a machine whose root is transient',
  { stock: STOCK, images: TRANSIENT, options: () => ({ system: COMING_DEBIAN }), missing: noComingDebian },
  (machine) => {
    const { bootID } = machine;
    const booted = async () => (await machine.lab.node.backend.status(deadline(30_000))).booted.image;
    const reboot = async () => {
      const boot = await bootID();
      await machine.sh('systemd-run --on-active=1 systemctl reboot');
      await machine.lab.until(
        'the reboot',
        ({ status }) => status?.bootID !== undefined && status.bootID !== boot,
      );
    };
    const nothingStaged = async () =>
      expect((await machine.lab.node.backend.status(deadline(30_000))).staged).toBeUndefined();
    const refused = async (config: string, content: string, why: string) => {
      const image = await updatesOf(machine.lab, [prepareRoot(content)]).build(config);
      await machine.updates.want(config, image, 'Disrupt');
      await machine.lab.until(why, ({ status }) =>
        (status?.conditions ?? []).some(
          ({ reason, message }) =>
            reason === 'PrepareRefused' &&
            message.includes(`${image}: /usr/lib/ostree/prepare-root.conf ${why}`),
        ),
      );
      await nothingStaged();
    };

    it('is refused where it would not boot, or would lose /etc, and nothing is staged', async () => {
      const boot = await bootID();
      await refused(
        'rendered-no',
        '[root]\ntransient = true\n',
        'makes / transient (root.transient) without a composefs',
      );
      await refused(
        'rendered-etc',
        `${COMPOSEFS}[etc]\ntransient = true\n`,
        'makes /etc transient (etc.transient)',
      );
      await refused('rendered-verity', '[composefs]\nenabled = verity\n', 'demands fs-verity');
      expect(await bootID()).toBe(boot);
      await reboot();
      expect(await booted()).toBe(machine.lab.stock);
      await nothingStaged();
    });

    it('is updated by a reboot', async () => {
      const image = await machine.updates.build('rendered-1');
      await machine.updates.want('rendered-1', image, 'Disrupt');
      await machine.lab.until('the first image', isAt('rendered-1'));
      expect(await booted()).toBe(image);
      expect(await machine.sh('findmnt --noheadings --output=SOURCE,OPTIONS /')).toMatch(/^composefs +rw,/);
      await machine.sh('touch /of-nobody /usr/of-nobody /etc/of-nobody /var/of-nobody');
    });

    it('takes a change of /etc and /usr live, which the next boot has as well', async () => {
      const boot = await bootID();
      const image = await machine.updates.build('rendered-2', { config: 'rendered-1', actions: [] }, [
        text(TOOL, 'two\n'),
      ]);
      await machine.updates.want('rendered-2', image, 'Live');
      await machine.lab.until('the second image', isAt('rendered-2'));
      expect(await bootID()).toBe(boot);
      expect(await machine.sh(`cat ${CONFIG} ${TOOL}`)).toBe('rendered-2\ntwo');
      await reboot();
      await machine.lab.until('the second image', isAt('rendered-2'));
      expect(await booted()).toBe(image);
      expect(await machine.sh(`cat ${CONFIG} ${TOOL}`)).toBe('rendered-2\ntwo');
    });

    it('keeps /etc and /var over a reboot, and nothing else', async () => {
      expect(await machine.sh('ls -d /of-nobody /usr/of-nobody /etc/of-nobody /var/of-nobody || true')).toBe(
        '/etc/of-nobody\n/var/of-nobody',
      );
    });

    it('goes back to standard mode, whose files outlive a reboot', async () => {
      const stock = await machine.lab.push({ entries: TRANSIENT });
      await machine.updates.render('rendered-3', 'three\n');
      await machine.updates.wantStandard('rendered-3', stock);
      await machine.lab.until('standard mode', isAt('rendered-3'));
      expect(await booted()).toBe(stock);
      await reboot();
      await machine.lab.until('standard mode', isAt('rendered-3'));
      expect(await booted()).toBe(stock);
      expect(await machine.sh(`cat ${CONFIG}`)).toBe('three');
    });
  },
);

describeLabNode(
  'a machine whose /etc is transient',
  { stock: TRANSIENT_ETC, options: () => ({ system: COMING_DEBIAN }), missing: noComingDebian },
  (machine) => {
    it('is not supported, and nothing is changed on it', async () => {
      expect(await machine.sh('findmnt --noheadings --output=FSTYPE /etc')).toBe('overlay');
      await machine.updates.want('rendered-1', await machine.updates.build('rendered-1'), 'Disrupt');
      const isRefused = (object: MachineConfigNode) => degraded(object)?.reason === 'UnsupportedHost';
      const node = await machine.lab.until('the reason', isRefused);
      expect(degraded(node)?.message).toContain('/etc is transient (etc.transient in prepare-root.conf)');
      await expect(machine.sh(`ls ${CONFIG}`)).rejects.toThrow(CONFIG);
    });
  },
);
