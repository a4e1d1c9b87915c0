/** A machine with systemd on which no daemon comes up: its timers and reboots are the subject. */
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import { watchdogPaths } from '../../daemon/host/boot-watchdog/watchdog-files.ts';
import { watchdogScript } from '../../daemon/host/boot-watchdog/watchdog-script.ts';
import { OSTREE_BOOT_SCRIPT } from '../../daemon/os/ostree/boot-script.ts';
import type { BootedNode } from '../../workshop/sandbox/systemd-node/node.ts';
import { degraded, isAt } from '../fixtures/node-configs.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { sample } from '../fixtures/sample.ts';
import { FIRST_TIME_MS, noLab } from './lab.ts';
import { type LabNode, startLabNode, UPDATE_MS } from './lab-node.ts';
import { CONFIG, enabledUnit, text, type Updates, updatesOf } from './lab-updates.ts';

const KUBELET = 'kubelet.service';
const STOCK = enabledUnit(KUBELET, '[Service]\nExecStart=/bin/sleep infinity\n');
const BROKEN = text(
  `/usr/lib/systemd/system/${KUBELET}.d/10-broken.conf`,
  "[Service]\nExecStart=\nExecStart=/bin/sh -c 'echo unknown flag: --container-runtime; exit 1'\n",
);
/** Far more than a daemon takes from the boot on, also where others are at work. */
const DAEMON_LIMIT_S = 15;

/** Where an image has this, its daemon can't be pulled. */
const NO_REGISTRY = '/etc/no-registry';

/** By what the kubelet knows of an API server that doesn't answer: nothing listens there. */
const API_AWAY = text(
  '/etc/kubernetes/kubelet.conf',
  'clusters:\n- cluster:\n    server: https://127.0.0.1:1\n  name: lab\n',
);
const POLL_MS = 500;

/** As the kubelet starts the daemon's pod. */
const startsPods = ({ machine }: BootedNode) =>
  machine
    .run(['sh', '-c', `systemctl is-active ${KUBELET} && ! test -e ${NO_REGISTRY}`], {
      timeoutMs: 30_000,
      signal: deadline(60_000),
    })
    .then(
      () => true,
      () => false,
    );
const rolledBackFrom =
  (config: string, reason = 'KubeletNeverStarted') =>
  (object: MachineConfigNode) =>
    object.status?.lastUpdate?.config === config && degraded(object)?.reason === reason;

/** Ways back that a run tries beside the first, each of two reboots; every one in make soak. */
const drawn = sample('ways back of a machine without a daemon', ['image', 'standard mode'], 1);

/** The tests are steps of one machine's life: each begins where the one before ended. */
describe.skipIf(noLab !== undefined)(
  'a machine on which no daemon comes up in the target',
  { timeout: patience(2 * UPDATE_MS) },
  () => {
    let lab: LabNode;
    let updates: Updates;

    beforeAll(async () => {
      const daemonArguments = ['--daemon-limit', String(DAEMON_LIMIT_S)];
      lab = await startLabNode(STOCK, { daemonArguments, startsDaemon: startsPods });
      updates = updatesOf(lab, STOCK);
    }, patience(FIRST_TIME_MS));
    afterAll(async () => {
      if (process.env['SHALE_TEST_LOG'] !== undefined) process.stderr.write(await lab.log());
      await lab?.[Symbol.asyncDispose]();
    }, patience(60_000));

    const booted = async () => (await lab.node.backend.status(deadline(10_000))).booted;
    /** @returns for how much of this boot the watchdog has found the API server away. */
    const secondsAway = async () => {
      const said = await lab.sh(`cat ${watchdogPaths.since} 2>/dev/null || true`).catch(() => '');
      return Number(said.split(' ')[1] ?? 0);
    };
    const expectNoTrace = async () => {
      expect(await lab.sh('find /etc /var/lib/shale -name "*boot-watchdog*"')).toBe('');
      expect(await lab.sh('systemctl is-system-running --wait')).toBe('running');
    };

    it('rolls back by itself to standard mode, with its files, and says why', async () => {
      await updates.render('rendered-1', 'standard\n');
      await updates.wantStandard('rendered-1');
      await lab.until('standard mode', isAt('rendered-1'));
      const before = await booted();
      await lab.sh('echo 10.0.0.1 db >>/etc/hosts');

      const broken = await updates.build('rendered-2', undefined, [BROKEN]);
      await updates.want('rendered-2', broken, 'Disrupt');
      const back = await lab.until('the rollback', rolledBackFrom('rendered-2'));
      expect(degraded(back)?.message).toMatch(
        /^kubelet\.service was not running within 15 s of boot, so no daemon could start; the host rolled back by itself: [\s\S]*unknown flag: --container-runtime/,
      );
      expect(back.status).toMatchObject({
        mode: 'Standard',
        configVersion: { current: 'rendered-1' },
        lastUpdate: { result: 'RolledBack', reason: 'KubeletNeverStarted' },
      });
      expect((await booted()).image).toBe(before.image);
      expect(await lab.sh(`cat ${CONFIG}`)).toBe('standard');
      expect(await lab.sh('cat /etc/hosts')).toContain('10.0.0.1 db');
      await expectNoTrace();
    });

    it('does not try that target again', async () => {
      const bootID = await lab.node.host.bootID();
      await lab.killDaemon();
      await lab.until('the same again', rolledBackFrom('rendered-2'));
      expect(await lab.node.host.bootID()).toBe(bootID);
    });

    it('has nothing of it left after an update that ends well', async () => {
      const image = await updates.build('rendered-3');
      await updates.want('rendered-3', image, 'Disrupt');
      const updated = await lab.until('the image', isAt('rendered-3'));
      expect(degraded(updated)).toBeUndefined();
      expect((await booted()).image).toBe(image);
      await expectNoTrace();
    });

    it.runIf(drawn.includes('image'))(
      'rolls back by itself to an image, where the kubelet runs and the daemon does not',
      async () => {
        const before = await booted();
        const without = [text(NO_REGISTRY, '')];
        await updates.want('rendered-4', await updates.build('rendered-4', undefined, without), 'Disrupt');
        const back = await lab.until('the rollback', rolledBackFrom('rendered-4', 'DaemonNeverStarted'));
        expect(degraded(back)?.message).toContain(
          'no daemon started within 15 s of boot, although kubelet.service was running; the host rolled back by itself',
        );
        expect(back.status).toMatchObject({ mode: 'Layered', configVersion: { current: 'rendered-3' } });
        expect((await booted()).image).toBe(before.image);
        expect(await lab.sh(`cat ${CONFIG}`)).toBe('rendered-3');
        await expectNoTrace();
      },
    );

    it('stays where another deployment is meant, where a daemon is, and after three times', async () => {
      const { id } = await booted();
      const [alive, went] = [watchdogPaths.alive, '/run/went-back'];
      const runFor = (deployment: string) => {
        const script = watchdogScript({
          deployment,
          limitSeconds: 0,
          rollbackScript: `touch ${went}; return 1`,
          bootScript: OSTREE_BOOT_SCRIPT,
        });
        const options = { timeoutMs: 30_000, signal: deadline(60_000) };
        return lab.node.machine.run(['sh'], { ...options, input: script });
      };
      expect(await runFor(`${'f'.repeat(64)}.0`)).toBe('');
      await lab.sh(`touch ${alive}`);
      expect(await runFor(id)).toBe('');
      await lab.sh(
        `rm ${alive}; printf 'deployment ${id}\\nbootID x\\ntries 3\\n\\n' >${watchdogPaths.mark}`,
      );
      expect(await runFor(id)).toMatch(/^rolled back 3 times/);
      expect(await lab.sh(`rm ${watchdogPaths.mark}; find ${went} 2>/dev/null || true`)).toBe('');
    });

    it('stays for longer where the kubelet runs and the API server does not answer', async () => {
      const without = [text(NO_REGISTRY, ''), API_AWAY];
      const image = await updates.build('rendered-away', undefined, without);
      await updates.want('rendered-away', image, 'Disrupt');
      // Nothing on the machine reports anything until then.
      const until = deadline(UPDATE_MS);
      while ((await secondsAway()) <= DAEMON_LIMIT_S) await delay(POLL_MS, undefined, { signal: until });
      await lab.killDaemon();
      const updated = await lab.until('the image', isAt('rendered-away'));
      expect(degraded(updated)).toBeUndefined();
      expect((await booted()).image).toBe(image);
      await expectNoTrace();
    });

    it.runIf(drawn.includes('standard mode'))(
      'takes the files of standard mode back, too, where they came with another image',
      async () => {
        await updates.render('rendered-5', 'standard\n');
        await updates.wantStandard('rendered-5');
        await lab.until('standard mode', isAt('rendered-5'));
        await updates.render('rendered-6', 'of the broken image\n');
        const osImage = await lab.push({ entries: [...STOCK, BROKEN] });
        await updates.wantStandard('rendered-6', osImage);
        const back = await lab.until('the rollback', rolledBackFrom('rendered-6'));
        expect(back.status).toMatchObject({ mode: 'Standard', configVersion: { current: 'rendered-5' } });
        expect((await booted()).image).toBe(lab.stock);
        expect(await lab.sh(`cat ${CONFIG}`)).toBe('standard');
        await expectNoTrace();
      },
    );
  },
);
