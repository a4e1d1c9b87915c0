import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { DisruptionAction } from '../../api/disruption-action.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import { isAt } from '../fixtures/node-configs.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { FIRST_TIME_MS } from './lab.ts';
import { type LabNode, type LabSystem, startLabNode, UPDATE_MS } from './lab-node.ts';
import { CONFIG, enabledUnit, SERVICE, text, type Updates, updatesOf } from './lab-updates.ts';

const restart: DisruptionAction = { type: 'Restart', service: SERVICE };
const STOCK = enabledUnit(SERVICE, `[Service]\nExecStart=/bin/sh -c 'cat ${CONFIG}; exec sleep infinity'\n`);
const ARGUMENTS = '/usr/lib/bootc/kargs.d/50-lab.toml';

/**
 * A daemon's updates of one machine, each from where the one before ended. The image tool, ostree and systemd are real.
 *
 * @param tool its name. @param system what it installs and updates. @param why it can't be had here, if it can't.
 */
export function daemonOfTool(tool: string, system: () => LabSystem, why: string | undefined): void {
  const title = `the daemon of a machine that ${tool} keeps`;
  describe.skipIf(why !== undefined)(
    why === undefined ? title : `${title} (skipped: ${why})`,
    { timeout: patience(UPDATE_MS + 120_000) },
    () => {
      let lab: LabNode;
      let updates: Updates;

      beforeAll(async () => {
        lab = await startLabNode(STOCK, { system: system() });
        updates = updatesOf(lab, STOCK);
      }, patience(FIRST_TIME_MS));
      afterEach(async ({ task }) => {
        if (task.result?.state === 'fail') process.stderr.write(await lab.log());
      });
      afterAll(() => lab?.[Symbol.asyncDispose](), patience(60_000));

      const bootID = () => lab.node.host.bootID();
      const booted = async () => (await lab.node.backend.status(deadline(60_000))).booted;
      const mainPid = () => lab.sh(`systemctl show --property=MainPID --value ${SERVICE}`);
      const kargs = (value: string) => text(ARGUMENTS, `kargs = ["${value}"]\n`);

      it('is in standard mode first, and finds its tool by itself', async () => {
        await updates.render('rendered-1', 'standard\n');
        await updates.wantStandard('rendered-1');
        const { status } = await lab.until('standard mode', isAt('rendered-1'));
        expect(status?.osBackend?.name).toBe(tool);
        expect(status?.mode).toBe('Standard');
        expect(await lab.sh(`cat ${CONFIG}`)).toBe('standard');
      });

      it('goes into layering', async () => {
        const before = await bootID();
        await lab.sh('echo edited here > /etc/motd');
        const image = await updates.build('rendered-2');
        await updates.want('rendered-2', image, 'Disrupt');
        const { status } = await lab.until('layered mode', isAt('rendered-2'));
        expect(status).toMatchObject({ mode: 'Layered', lastUpdate: { result: 'Succeeded' } });
        expect(await bootID()).not.toBe(before);
        expect((await booted()).image).toBe(image);
        expect(await lab.sh(`cat ${CONFIG} /etc/motd`)).toBe('rendered-2\nedited here');
      });

      it('takes a change live', async () => {
        const [pid, boot] = [await mainPid(), await bootID()];
        const actions = [restart];
        const image = await updates.build('rendered-3', { config: 'rendered-2', actions }, [
          text('/usr/share/lab', 'live\n'),
        ]);
        await updates.want('rendered-3', image, 'Live');
        await lab.until('the live change', isAt('rendered-3'));
        expect(await bootID()).toBe(boot);
        expect(await mainPid()).not.toBe(pid);
        expect(await lab.sh(`cat ${CONFIG} /usr/share/lab`)).toBe('rendered-3\nlive');
      });

      it('reboots for kernel arguments', async () => {
        const check = text(
          '/etc/shale/health.d/10-lab',
          `#!/bin/sh\nsystemctl is-active ${SERVICE}\n`,
          0o755,
        );
        const image = await updates.build('rendered-4', undefined, [kargs('lab.karg=1'), check]);
        await updates.want('rendered-4', image, 'Disrupt');
        await lab.until('the kernel argument', isAt('rendered-4'));
        expect(await lab.sh('cat /proc/cmdline')).toContain('lab.karg=1');
        expect(await lab.sh(`cat ${CONFIG}`)).toBe('rendered-4');
      });

      it('goes back from an image whose health check fails', async () => {
        const failing = text('/etc/shale/health.d/10-net', '#!/bin/sh\necho no route\nexit 1\n', 0o755);
        const image = await updates.build('rendered-5', undefined, [kargs('lab.karg=2'), failing]);
        await updates.want('rendered-5', image, 'Disrupt');
        const isBack = ({ status }: MachineConfigNode) => status?.lastUpdate?.result === 'RolledBack';
        const { status } = await lab.until('the way back', isBack);
        expect(status?.lastUpdate?.message).toBe(
          'health check /etc/shale/health.d/10-net failed (exit code 1): no route',
        );
        const line = await lab.sh('cat /proc/cmdline');
        expect([line.includes('lab.karg=1'), line.includes('lab.karg=2')]).toEqual([true, false]);
        expect(await lab.sh(`cat ${CONFIG}; ls /etc/shale/health.d`)).toBe('rendered-4\n10-lab');
      });

      it('leaves layering for the stock image, with the files of its config', async () => {
        await updates.render('rendered-6', 'standard again\n');
        await updates.wantStandard('rendered-6');
        const { status } = await lab.until('standard mode again', isAt('rendered-6'));
        expect(status).toMatchObject({ mode: 'Standard', baseImage: lab.stock });
        expect((await booted()).image).toBe(lab.stock);
        expect(await lab.sh('cat /proc/cmdline')).not.toContain('lab.karg');
        expect(await lab.sh(`cat ${CONFIG} /etc/motd`)).toBe('standard again\nedited here');
      });
    },
  );
}
