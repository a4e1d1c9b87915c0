import { expect, it } from 'vitest';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import { type DigestedPullspec, pullspecDigest } from '../../api/references.ts';
import { isRolledBack } from '../fixtures/node-configs.ts';
import type { NodeControlPlane } from '../fixtures/node-control-plane.ts';
import {
  CONFIG,
  FAILED_CHECK,
  FAILING_CHECK,
  kernelArgument,
  RESTART,
  SERVICE,
  text,
  type UpdatedMachine,
  type Updates,
} from './lab-updates.ts';

/** A machine with the daemon as it ships, while its tests run. */
export interface TestedMachine {
  readonly lab: Pick<NodeControlPlane, 'until'> & Pick<UpdatedMachine, 'stock'>;
  readonly updates: Updates;
  /** Runs a shell's command line as root inside and returns what it printed, without the last line's end. */
  sh(line: string): Promise<string>;
  bootID(): Promise<string>;
  /** Those of the kernel that runs. */
  kernelArguments(): Promise<string[]>;
  /** Waits until the machine runs a config and is done with it. */
  arrive(config: string): Promise<MachineConfigNode>;
}

interface HostOfUpdates {
  /** What keeps its operating system. */
  readonly tool: string;
  /** @returns what that says is booted, the image's digest in it. */
  booted(): Promise<string>;
}

const hexOf = (image: DigestedPullspec) => pullspecDigest(image).slice('sha256:'.length);

/**
 * Tests that are steps of one machine's life, from standard mode through layering and back: each begins where the one
 * before ended.
 *
 * @param machine comes with LAB_SERVICE.
 */
export function machineUpdates(machine: TestedMachine, host: HostOfUpdates): void {
  const { sh, bootID, kernelArguments } = machine;
  const mainPid = () => sh(`systemctl show --property=MainPID --value ${SERVICE}`);

  it('is in standard mode first, and finds its tool by itself', async () => {
    await machine.updates.render('rendered-1', 'standard\n');
    await machine.updates.wantStandard('rendered-1');
    const { status } = await machine.arrive('rendered-1');
    expect(status).toMatchObject({ mode: 'Standard', osBackend: { name: host.tool } });
    expect(await sh(`cat ${CONFIG}`)).toBe('standard');
  });

  it('goes into layering, with its /etc and what the admin had changed there', async () => {
    const boot = await bootID();
    await sh('echo edited here > /etc/motd');
    const image = await machine.updates.build('rendered-2');
    await machine.updates.want('rendered-2', image, 'Disrupt');
    const { status } = await machine.arrive('rendered-2');
    expect(status).toMatchObject({ mode: 'Layered', lastUpdate: { result: 'Succeeded' } });
    expect(await bootID()).not.toBe(boot);
    expect(status?.configImage?.currentImage).toBe(image);
    expect(await host.booted()).toContain(hexOf(image));
    expect(await sh(`cat ${CONFIG} /etc/motd`)).toBe('rendered-2\nedited here');
  });

  it('takes a change live, of /etc and /usr: another process of the service, the same boot', async () => {
    const [pid, boot] = [await mainPid(), await bootID()];
    const from = { config: 'rendered-2', actions: [RESTART] };
    const image = await machine.updates.build('rendered-3', from, [text('/usr/share/lab', 'live\n')]);
    await machine.updates.want('rendered-3', image, 'Live');
    await machine.arrive('rendered-3');
    expect(await bootID()).toBe(boot);
    expect(await mainPid()).not.toBe(pid);
    expect(await sh(`cat ${CONFIG} /usr/share/lab`)).toBe('rendered-3\nlive');
  });

  it("boots with an image's kernel arguments", async () => {
    const check = text('/etc/shale/health.d/10-lab', `#!/bin/sh\nsystemctl is-active ${SERVICE}\n`, 0o755);
    const image = await machine.updates.build('rendered-4', undefined, [kernelArgument('lab.karg=1'), check]);
    await machine.updates.want('rendered-4', image, 'Disrupt');
    await machine.arrive('rendered-4');
    expect(await kernelArguments()).toContain('lab.karg=1');
    expect(await sh(`cat ${CONFIG} /etc/motd`)).toBe('rendered-4\nedited here');
  });

  it('rolls back from an image whose health check fails', async () => {
    const boot = await bootID();
    const more = [kernelArgument('lab.karg=2'), FAILING_CHECK];
    const image = await machine.updates.build('rendered-5', undefined, more);
    await machine.updates.want('rendered-5', image, 'Disrupt');
    const { status } = await machine.lab.until('the rollback', isRolledBack);
    expect(status?.lastUpdate?.message).toBe(FAILED_CHECK);
    expect(await bootID()).not.toBe(boot);
    expect(await kernelArguments()).toContain('lab.karg=1');
    expect(await kernelArguments()).not.toContain('lab.karg=2');
    expect(await sh(`cat ${CONFIG}; ls /etc/shale/health.d`)).toBe('rendered-4\n10-lab');
  });

  it('leaves layering for the stock image, with the files of its config', async () => {
    await machine.updates.render('rendered-6', 'standard again\n');
    await machine.updates.wantStandard('rendered-6');
    const { status } = await machine.arrive('rendered-6');
    expect(status).toMatchObject({ mode: 'Standard', baseImage: machine.lab.stock });
    expect(await host.booted()).toContain(hexOf(machine.lab.stock));
    expect(await kernelArguments()).not.toContain('lab.karg=1');
    expect(await sh(`cat ${CONFIG} /etc/motd; test -e /usr/share/lab || echo gone`)).toBe(
      'standard again\nedited here\ngone',
    );
  });
}
