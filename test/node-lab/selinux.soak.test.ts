/** An enforcing kernel: labels that are wrong are denied here and nowhere else. */
import { expect, it } from 'vitest';
import type { DisruptionAction } from '../../api/disruption-action.ts';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import { LAB_SERVICE, RESTART } from './lab-updates.ts';
import {
  labelledConfig,
  labelledLayer,
  writtenInLayeredMode,
  writtenInStandardMode,
} from './labelled-config.ts';
import { describeMachine } from './virtual-machine/describe-machine.ts';
import { SELINUX_LAYER, SELINUX_RECIPE } from './virtual-machine/selinux-recipe.ts';
import { ostreeSystem } from './virtual-machine/virtual-system.ts';

const STOCK = [...SELINUX_LAYER, ...LAB_SERVICE];
const OPTIONS = { name: 'selinux', system: ostreeSystem(SELINUX_RECIPE) };

/**
 * What is written without Shale, by others than the policy expects: ostree's mark of a /var that it has labelled has no
 * label itself, and systemd's seed is made before its directory has one.
 */
const NOT_SHALES = ['/var/.ostree-selabeled', '/var/lib/systemd/random-seed'];

/**
 * Nothing that the policy enforces: what services create has their user, and restorecon(8) leaves it unless it is
 * forced. The policy has another one for files in homes.
 */
const OTHER_USER = /^Would relabel \/var\/(roothome|home)\/\S+ from system_u:(\S+) to unconfined_u:\2$/;

/** The tests are steps of one machine's life: each begins where the one before ended. */
describeMachine('the daemon of a machine that enforces an SELinux policy', STOCK, OPTIONS, (machine) => {
  const { sh, bootID, arrive } = machine;
  const lines = async (command: string) => (await sh(command)).split('\n').filter((line) => line !== '');

  /**
   * @returns what restorecon(8) would relabel, but for what isn't Shale's. @param full whether it compares the user,
   * too.
   */
  const wrong = async (full = '') => {
    const found = await lines(`restorecon -R -n -v ${full} /etc /usr /var`);
    return found.filter(
      (line) =>
        !NOT_SHALES.some((name) => line.startsWith(`Would relabel ${name} from `)) && !OTHER_USER.test(line),
    );
  };
  /** What the config has is there, with the policy's label; and so is everything else. */
  const expectLabels = async (written: readonly string[]) => {
    expect(await sh('getenforce')).toBe('Enforcing');
    expect(await wrong()).toEqual([]);
    expect(await wrong('-F')).toEqual([]);
    const verified = await lines(`matchpathcon -V ${written.join(' ')} || true`);
    expect(verified).toEqual(written.map((name) => `${name} verified.`));
    // A program that may not read its input is given an empty one.
    expect(await sh(`dmesg | grep 'avc: *denied .*comm="\\(restorecon\\|setfiles\\)"' || true`)).toBe('');
  };
  const build = (rendered: MachineConfig, from?: { config: string; actions: DisruptionAction[] }) =>
    machine.updates.build(rendered.metadata.name, from, labelledLayer(rendered));

  it('writes a config in standard mode', async () => {
    expect(await wrong()).toEqual([]);
    await machine.lab.client.create(MachineConfigs, labelledConfig('rendered-1', 'one'));
    await machine.updates.wantStandard('rendered-1');
    const { status } = await arrive('rendered-1');
    expect(status).toMatchObject({ mode: 'Standard' });
    await expectLabels(writtenInStandardMode);
  });

  it('boots an image with that config', async () => {
    const boot = await bootID();
    const image = await build(labelledConfig('rendered-2', 'two'));
    await machine.updates.want('rendered-2', image, 'Disrupt');
    const { status } = await arrive('rendered-2');
    expect(status).toMatchObject({ mode: 'Layered' });
    expect(await bootID()).not.toBe(boot);
    await expectLabels(writtenInLayeredMode);
  });

  it('takes a change live, of /etc, /usr and /var', async () => {
    const boot = await bootID();
    const from = { config: 'rendered-2', actions: [RESTART] };
    await machine.updates.want(
      'rendered-3',
      await build(labelledConfig('rendered-3', 'three'), from),
      'Live',
    );
    await arrive('rendered-3');
    expect(await bootID()).toBe(boot);
    expect(await sh('cat /etc/hosts /var/lib/lab/nested/state /var/usrlocal/bin/lab-tool')).toBe(
      '# three\n# three\n# three',
    );
    await expectLabels(writtenInLayeredMode);
  });

  it('says why systemd-tmpfiles failed, which the policy confines, and reboots instead', async () => {
    const from = { config: 'rendered-3', actions: [RESTART] };
    const image = await build(labelledConfig('rendered-4', 'four'), from);
    await sh('chattr +i /var/lib/lab/nested/state');
    await machine.updates.want('rendered-4', image, 'Live');
    const asks = await machine.lab.until(
      'the plan to reboot',
      ({ status }) => status?.plan?.config === 'rendered-4' && status.plan.actions[0]?.type === 'Reboot',
    );
    expect(asks.status?.plan?.source).toMatch(/systemd-tmpfiles[\s\S]*Operation not permitted/);
    await sh('chattr -i /var/lib/lab/nested/state');
    await machine.updates.want('rendered-4', image, 'Disrupt');
    await arrive('rendered-4');
    await expectLabels(writtenInLayeredMode);
  });

  it('leaves layering for the stock image, with the files of its config', async () => {
    await machine.lab.client.create(MachineConfigs, labelledConfig('rendered-5', 'five'));
    await machine.updates.wantStandard('rendered-5');
    const { status } = await arrive('rendered-5');
    expect(status).toMatchObject({ mode: 'Standard', baseImage: machine.lab.stock });
    await expectLabels(writtenInStandardMode);
  });
});
