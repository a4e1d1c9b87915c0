import { expect, it } from 'vitest';
import type { DisruptionAction } from '../../../api/disruption-action.ts';
import type { MachineConfigNode } from '../../../api/machine-config-node.ts';
import { type DigestedPullspec, pullspecDigest } from '../../../api/references.ts';
import type { LayerEntry } from '../../../image/layer/entry.ts';
import { isAt } from '../../fixtures/node-configs.ts';
import { CONFIG, enabledUnit, SERVICE, text } from '../lab-updates.ts';
import type { TestedMachine } from './describe-machine.ts';

const restart: DisruptionAction = { type: 'Restart', service: SERVICE };
const ARGUMENTS = '/usr/lib/bootc/kargs.d/50-lab.toml';

/** The service that the updates are for. */
export const UPDATED_SERVICE: readonly LayerEntry[] = enabledUnit(
  SERVICE,
  `[Service]\nExecStart=/bin/sh -c 'cat ${CONFIG}; exec sleep infinity'\n`,
);

const hexOf = (image: DigestedPullspec) => pullspecDigest(image).slice('sha256:'.length);

/**
 * Tests that are steps of one machine's life: each begins where the one before ended. Every reboot goes through firmware,
 * bootloader, kernel and initramfs, in software emulation.
 *
 * @param bootedCommand prints what the machine's own tool says was booted, with the digest of the image.
 */
export function bootedUpdates(machine: TestedMachine, bootedCommand: string): void {
  const { sh } = machine;
  const bootID = () => sh('cat /proc/sys/kernel/random/boot_id');
  const kernelArguments = async () => (await sh('cat /proc/cmdline')).split(' ');
  const mainPid = () => sh(`systemctl show --property=MainPID --value ${SERVICE}`);
  const booted = () => sh(bootedCommand);
  const arrive = (config: string) =>
    machine.lab.timed(`until ${config} is applied`, () => machine.lab.until(config, isAt(config)));

  it('boots the image that is its target, with its /etc and what the admin had changed there', async () => {
    const before = await bootID();
    await sh('echo edited here > /etc/motd');
    const image = await machine.updates.build('rendered-1');
    await machine.updates.want('rendered-1', image, 'Disrupt');
    const { status } = await arrive('rendered-1');
    expect(status).toMatchObject({ mode: 'Layered', lastUpdate: { result: 'Succeeded' } });
    expect(await bootID()).not.toBe(before);
    expect(status?.configImage?.currentImage).toBe(image);
    expect(await booted()).toContain(hexOf(image));
    expect(await sh(`cat ${CONFIG} /etc/motd`)).toBe('rendered-1\nedited here');
  });

  it('takes a change live, of /etc and /usr: another process of the service, the same boot', async () => {
    const [pid, boot] = [await mainPid(), await bootID()];
    const image = await machine.updates.build('rendered-2', { config: 'rendered-1', actions: [restart] }, [
      text('/usr/share/lab', 'live\n'),
    ]);
    await machine.updates.want('rendered-2', image, 'Live');
    await arrive('rendered-2');
    expect(await bootID()).toBe(boot);
    expect(await mainPid()).not.toBe(pid);
    expect(await sh(`cat ${CONFIG} /usr/share/lab`)).toBe('rendered-2\nlive');
  });

  it("boots with an image's kernel arguments", async () => {
    const entries = [
      text(ARGUMENTS, 'kargs = ["lab.karg=1"]\n'),
      text('/etc/shale/health.d/10-lab', `#!/bin/sh\nsystemctl is-active ${SERVICE}\n`, 0o755),
    ];
    await machine.updates.want(
      'rendered-3',
      await machine.updates.build('rendered-3', undefined, entries),
      'Disrupt',
    );
    await arrive('rendered-3');
    expect(await kernelArguments()).toContain('lab.karg=1');
    expect(await sh(`cat ${CONFIG} /etc/motd`)).toBe('rendered-3\nedited here');
  });

  it('goes back from an image whose health check fails', async () => {
    const boot = await bootID();
    const entries = [
      text(ARGUMENTS, 'kargs = ["lab.karg=2"]\n'),
      text('/etc/shale/health.d/10-net', '#!/bin/sh\necho no route\nexit 1\n', 0o755),
    ];
    await machine.updates.want(
      'rendered-4',
      await machine.updates.build('rendered-4', undefined, entries),
      'Disrupt',
    );
    const isBack = ({ status }: MachineConfigNode) => status?.lastUpdate?.result === 'RolledBack';
    const { status } = await machine.lab.timed('until rendered-4 is rolled back', () =>
      machine.lab.until('the way back', isBack),
    );
    expect(status?.lastUpdate?.message).toBe(
      'health check /etc/shale/health.d/10-net failed (exit code 1): no route',
    );
    expect(await bootID()).not.toBe(boot);
    expect(await kernelArguments()).toContain('lab.karg=1');
    expect(await kernelArguments()).not.toContain('lab.karg=2');
    expect(await sh(`cat ${CONFIG}; ls /etc/shale/health.d`)).toBe('rendered-3\n10-lab');
  });

  it('leaves layering for the stock image, with the files of its config', async () => {
    await machine.updates.render('rendered-5', 'standard\n');
    await machine.updates.wantStandard('rendered-5');
    const { status } = await arrive('rendered-5');
    expect(status).toMatchObject({ mode: 'Standard', baseImage: machine.lab.stock });
    expect(await booted()).toContain(hexOf(machine.lab.stock));
    expect(await kernelArguments()).not.toContain('lab.karg=1');
    expect(await sh(`cat ${CONFIG} /etc/motd; ls /usr/share/lab ${ARGUMENTS} 2>&1 | wc -l`)).toBe(
      'standard\nedited here\n2',
    );
  });
}
