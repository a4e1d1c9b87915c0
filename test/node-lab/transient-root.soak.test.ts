import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { degraded, isAt } from '../fixtures/node-configs.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { FIRST_TIME_MS } from './lab.ts';
import { type LabNode, startLabNode, UPDATE_MS } from './lab-node.ts';
import { CONFIG, text, type Updates, updatesOf } from './lab-updates.ts';
import { COMING_DEBIAN, noComingDebian } from './prepared-root.ts';

const prepareRoot = (content: string) => text('/usr/lib/ostree/prepare-root.conf', content);
/** As for soft reboots: this machine's ostree installs it, without a composefs. */
const STOCK = [prepareRoot('[composefs]\nenabled = maybe\n')];
const COMPOSEFS = '[composefs]\nenabled = yes\n';
const TRANSIENT = [prepareRoot(`${COMPOSEFS}[root]\ntransient = true\n`)];
const TOOL = '/usr/share/lab/tool';

const suffix = noComingDebian === undefined ? '' : ` (skipped: ${noComingDebian})`;

/** The tests are steps of one machine's life: each begins where the one before ended. ostree and systemd are real. */
describe.skipIf(noComingDebian !== undefined)(
  `a machine whose root is transient${suffix}`,
  { timeout: patience(UPDATE_MS) },
  () => {
    let lab: LabNode;
    let updates: Updates;

    beforeAll(async () => {
      lab = await startLabNode(STOCK, { system: COMING_DEBIAN });
      updates = updatesOf(lab, TRANSIENT);
    }, patience(FIRST_TIME_MS));
    afterEach(async ({ task }) => {
      if (task.result?.state === 'fail') process.stderr.write(await lab.log());
    });
    afterAll(() => lab?.[Symbol.asyncDispose](), patience(60_000));

    const bootID = () => lab.node.host.bootID();
    const booted = async () => (await lab.node.backend.status(deadline(30_000))).booted.image;
    const reboot = async () => {
      const boot = await bootID();
      await lab.sh('systemd-run --on-active=1 systemctl reboot');
      await lab.until('the reboot', ({ status }) => status?.bootID !== undefined && status.bootID !== boot);
    };
    const nothingStaged = async () =>
      expect((await lab.node.backend.status(deadline(30_000))).staged).toBeUndefined();
    const refused = async (config: string, content: string, why: string) => {
      const image = await updatesOf(lab, [prepareRoot(content)]).build(config);
      await updates.want(config, image, 'Disrupt');
      await lab.until(why, ({ status }) =>
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
      expect(await booted()).toBe(lab.stock);
      await nothingStaged();
    });

    it('is updated by a reboot', async () => {
      const image = await updates.build('rendered-1');
      await updates.want('rendered-1', image, 'Disrupt');
      await lab.until('the first image', isAt('rendered-1'));
      expect(await booted()).toBe(image);
      expect(await lab.sh('findmnt --noheadings --output=SOURCE,OPTIONS /')).toMatch(/^composefs +rw,/);
      await lab.sh('touch /of-nobody /usr/of-nobody /etc/of-nobody /var/of-nobody');
    });

    it('takes a change of /etc and /usr live, which the next boot has as well', async () => {
      const boot = await bootID();
      const image = await updates.build('rendered-2', { config: 'rendered-1', actions: [] }, [
        text(TOOL, 'two\n'),
      ]);
      await updates.want('rendered-2', image, 'Live');
      await lab.until('the second image', isAt('rendered-2'));
      expect(await bootID()).toBe(boot);
      expect(await lab.sh(`cat ${CONFIG} ${TOOL}`)).toBe('rendered-2\ntwo');
      await reboot();
      await lab.until('the second image', isAt('rendered-2'));
      expect(await booted()).toBe(image);
      expect(await lab.sh(`cat ${CONFIG} ${TOOL}`)).toBe('rendered-2\ntwo');
    });

    it('keeps /etc and /var over a reboot, and nothing else', async () => {
      expect(await lab.sh('ls -d /of-nobody /usr/of-nobody /etc/of-nobody /var/of-nobody || true')).toBe(
        '/etc/of-nobody\n/var/of-nobody',
      );
    });

    it('goes back to standard mode, whose files outlive a reboot', async () => {
      const stock = await lab.push({ entries: TRANSIENT });
      await updates.render('rendered-3', 'three\n');
      await updates.wantStandard('rendered-3', stock);
      await lab.until('standard mode', isAt('rendered-3'));
      expect(await booted()).toBe(stock);
      await reboot();
      await lab.until('standard mode', isAt('rendered-3'));
      expect(await booted()).toBe(stock);
      expect(await lab.sh(`cat ${CONFIG}`)).toBe('three');
    });
  },
);

describe.skipIf(noComingDebian !== undefined)(
  `a machine whose /etc is transient${suffix}`,
  { timeout: patience(UPDATE_MS) },
  () => {
    it('is not supported, and nothing is changed on it', async () => {
      // Without a composefs ostree looks at it only where /sysroot is read-only.
      const stock = [prepareRoot('[sysroot]\nreadonly = true\n[etc]\ntransient = true\n')];
      await using lab = await startLabNode(stock, { system: COMING_DEBIAN });
      const updates = updatesOf(lab, stock);
      expect(await lab.sh('findmnt --noheadings --output=FSTYPE /etc')).toBe('overlay');
      await updates.want('rendered-1', await updates.build('rendered-1'), 'Disrupt');
      const node = await lab.until('the reason', (object) => degraded(object)?.reason === 'UnsupportedHost');
      expect(degraded(node)?.message).toContain('/etc is transient (etc.transient in prepare-root.conf)');
      await expect(lab.sh(`ls ${CONFIG}`)).rejects.toThrow(CONFIG);
    });
  },
);
