/** The daemon as a service of a machine with systemd: restarts, hangs, crashes and reboots are systemd's own. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import { degraded, isAt, isRolledBack } from '../fixtures/node-configs.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { FIRST_TIME_MS, noLab } from './lab.ts';
import { ACTION_LIMIT_S, type LabNode, startLabNode, UPDATE_MS } from './lab-node.ts';
import {
  CONFIG,
  enabledUnit,
  FAILED_CHECK,
  FAILING_CHECK,
  kernelArgument,
  RESTART,
  SERVICE,
  text,
  type Updates,
  updatesOf,
} from './lab-updates.ts';

/** It starts as its config says, and fails by files in /run, which no reboot leaves there. */
const UNIT = `[Service]
ExecStartPre=/bin/sh -c 'if test -e /run/hang; then echo waits for a lock; sleep infinity; fi'
ExecStart=/bin/sh -c 'cat ${CONFIG}; if test -e /run/crash; then sleep 0.3; echo bad option; exit 1; fi; exec sleep infinity'
Restart=on-failure
RestartSec=100ms
[Install]
WantedBy=multi-user.target
`;
const STOCK = enabledUnit(SERVICE, UNIT);

const asksForReboot = (config: string) => (object: MachineConfigNode) =>
  object.status?.plan?.config === config && object.status.plan.actions[0]?.type === 'Reboot';

/** The tests are steps of one machine's life: each begins where the one before ended. */
describe.skipIf(noLab !== undefined)(
  'the daemon of a machine with systemd',
  { timeout: patience(2 * UPDATE_MS) },
  () => {
    let lab: LabNode;
    let updates: Updates;

    beforeAll(async () => {
      lab = await startLabNode(STOCK);
      updates = updatesOf(lab, STOCK);
    }, patience(FIRST_TIME_MS));
    afterAll(async () => {
      if (process.env['SHALE_TEST_LOG'] !== undefined) process.stderr.write(await lab.log());
      await lab?.[Symbol.asyncDispose]();
    }, patience(60_000));

    const build: Updates['build'] = (...args) => updates.build(...args);
    const want: Updates['want'] = (...args) => updates.want(...args);
    const mainPid = () => lab.sh('systemctl show --property=MainPID --value lab.service');
    const bootID = () => lab.node.host.bootID();
    const booted = async () => (await lab.node.backend.status(deadline(10_000))).booted;

    it('reboots into its first image', async () => {
      const before = await bootID();
      const image = await build('rendered-1');
      await want('rendered-1', image, 'Disrupt');
      const updated = await lab.until('the first image', isAt('rendered-1'));
      expect(updated.status).toMatchObject({ mode: 'Layered', lastUpdate: { result: 'Succeeded' } });
      expect(await bootID()).not.toBe(before);
      expect((await booted()).image).toBe(image);
      expect(await lab.sh(`cat ${CONFIG}`)).toBe('rendered-1');
    });

    it('takes a change live: another process of the service, the same boot', async () => {
      const [pid, boot] = [await mainPid(), await bootID()];
      await want(
        'rendered-2',
        await build('rendered-2', { config: 'rendered-1', actions: [RESTART] }),
        'Live',
      );
      await lab.until('the second image', isAt('rendered-2'));
      expect(await bootID()).toBe(boot);
      expect(await mainPid()).not.toBe(pid);
      expect(await lab.sh('journalctl _SYSTEMD_UNIT=lab.service -n 1 -o cat')).toBe('rendered-2');
    });

    it('ends a live change that it is killed in', async () => {
      const boot = await bootID();
      const image = await build('rendered-3', { config: 'rendered-2', actions: [RESTART] });
      await want('rendered-3', image, 'Live');
      await lab.until('the restart', ({ status }) =>
        (status?.conditions ?? []).some(
          ({ type, message }) => type === 'UpdateExecuted' && message === 'Running Restart(lab.service)',
        ),
      );
      await lab.killDaemon();
      await lab.until('the third image', isAt('rendered-3'));
      expect(await bootID()).toBe(boot);
      expect(await lab.sh('journalctl _SYSTEMD_UNIT=lab.service -n 1 -o cat')).toBe('rendered-3');
      expect(await lab.sh('systemctl is-active lab.service')).toBe('active');
    });

    it('asks for a reboot when a service hangs, with its last log lines, and waits for permission', async () => {
      const boot = await bootID();
      await lab.sh('touch /run/hang');
      const image = await build('rendered-4', { config: 'rendered-3', actions: [RESTART] });
      await want('rendered-4', image, 'Live');
      const asks = await lab.until('the plan to reboot', asksForReboot('rendered-4'));
      expect(asks.status?.plan?.source).toMatch(
        new RegExp(`restart lab\\.service: took longer than ${ACTION_LIMIT_S} s\\n[^]*waits for a lock`),
      );
      expect(await bootID()).toBe(boot);
      await want('rendered-4', image, 'Disrupt');
      await lab.until('the fourth image', isAt('rendered-4'));
      expect(await bootID()).not.toBe(boot);
      expect(await lab.sh('journalctl _SYSTEMD_UNIT=lab.service -b -n 1 -o cat')).toBe('rendered-4');
    });

    it('asks for a reboot when a service crashes over and over', async () => {
      await lab.sh('touch /run/crash');
      const image = await build('rendered-5', { config: 'rendered-4', actions: [RESTART] });
      await want('rendered-5', image, 'Live');
      const asks = await lab.until('the plan to reboot', asksForReboot('rendered-5'));
      expect(asks.status?.plan?.source).toMatch(/restart lab\.service: [\s\S]*bad option/);
      await want('rendered-5', image, 'Disrupt');
      await lab.until('the fifth image', isAt('rendered-5'));
      expect(await lab.sh('systemctl is-active lab.service')).toBe('active');
    });

    it('rolls back from an image whose health check fails', async () => {
      const before = await booted();
      await want('rendered-6', await build('rendered-6', undefined, [FAILING_CHECK]), 'Disrupt');
      const back = await lab.until('the rollback', isRolledBack);
      await lab.until('the reason', (object) => degraded(object)?.reason === 'HealthCheckFailed');
      expect(back.status?.lastUpdate?.message).toBe(FAILED_CHECK);
      expect((await booted()).image).toBe(before.image);
      expect(await lab.sh(`cat ${CONFIG}`)).toBe('rendered-5');
      expect(await lab.sh('ls /etc/shale/health.d 2>&1 || true')).not.toContain('10-net');
      expect(await lab.sh('systemctl is-system-running --wait')).toBe('running');
    });

    it("sets an image's kernel arguments, and runs checks that look at the machine", async () => {
      const entries = [
        kernelArgument('lab.karg=1'),
        text('/etc/shale/health.d/10-lab', '#!/bin/sh\nsystemctl is-active lab.service\n', 0o755),
      ];
      await want('rendered-7', await build('rendered-7', undefined, entries), 'Disrupt');
      await lab.until('the seventh image', isAt('rendered-7'));
      expect((await booted()).kernelArguments).toContain('lab.karg=1');
    });

    it("leaves layering: the stock image with the config's files, and no argument of the image's", async () => {
      await updates.render('rendered-8', 'standard\n');
      await updates.wantStandard('rendered-8');
      const out = await lab.until('standard mode', isAt('rendered-8'));
      expect(out.status).toMatchObject({ mode: 'Standard', baseImage: lab.stock });
      expect((await booted()).image).toBe(lab.stock);
      expect((await booted()).kernelArguments).not.toContain('lab.karg=1');
      expect(await lab.sh(`cat ${CONFIG}`)).toBe('standard');
    });
  },
);
