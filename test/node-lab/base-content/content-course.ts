import { expect, it } from 'vitest';
import { type MachineConfig, MachineConfigs } from '../../../api/machine-config.ts';
import type { MachineConfigNode } from '../../../api/machine-config-node.ts';
import type { Listing } from '../../differential/listing.ts';
import type { UpdatedMachine } from '../lab-updates.ts';
import type { TestedMachine } from '../machine-updates.ts';
import { emptyConfig, INSTANCE, liveConfig, meetingConfig } from './base-configs.ts';
import { differingFrom } from './differing-from.ts';
import { buildOnStock } from './real-build.ts';

/** A machine of withLinks, while its tests run. */
interface MachineOfCourse extends TestedMachine {
  readonly lab: TestedMachine['lab'] & UpdatedMachine;
}

interface HostOfCourse {
  /** @returns everything that its tree has. */
  list(): Promise<Listing>;
  /** Whether its tool takes a change without a reboot; where none does, the course is the reboots alone. */
  readonly takesLive: boolean;
}

/**
 * Tests that are steps of one machine's life: whatever way a config comes to the machine, its tree is what the config
 * and the base say, as the judge of the differential test has it; and once no config has the paths any more, the tree
 * is as it was.
 */
export function contentCourse(machine: MachineOfCourse, { list, takesLive }: HostOfCourse): void {
  let stock: Listing = new Map();
  let last: MachineConfig | undefined;

  const create = (rendered: MachineConfig) => machine.lab.client.create(MachineConfigs, rendered);
  const arrive = async (rendered: MachineConfig) => {
    last = rendered;
    return machine.arrive(rendered.metadata.name);
  };
  /** Brings the machine to a config by an image, as the operator would. @returns whether it is the same boot. */
  const bring = async (rendered: MachineConfig, level: 'Live' | 'Disrupt'): Promise<boolean> => {
    const boot = await machine.bootID();
    await create(rendered);
    const from = level === 'Live' ? last : undefined;
    const image = await buildOnStock(machine.lab, rendered, from);
    await machine.updates.want(rendered.metadata.name, image, level);
    const { status } = await arrive(rendered);
    expect(status).toMatchObject({ mode: 'Layered', lastUpdate: { result: 'Succeeded' } });
    return (await machine.bootID()) === boot;
  };
  /** What differs from what the config makes of the stock image. */
  const differing = async (rendered: MachineConfig) => differingFrom(rendered, stock, await list());
  const instance = () => machine.sh(`systemctl is-enabled ${INSTANCE} 2>&1 || true`);
  const reboot = async () => {
    const boot = await machine.bootID();
    await machine.sh('systemd-run --on-active=1 systemctl reboot');
    const isBack = ({ status }: MachineConfigNode) =>
      status?.bootID !== undefined && !status.bootID.startsWith(boot);
    await machine.lab.until('the reboot', isBack);
    if (last !== undefined) await arrive(last);
  };

  it('is in standard mode, without content', async () => {
    const rendered = emptyConfig('rendered-stock');
    await create(rendered);
    await machine.updates.wantStandard('rendered-stock');
    await arrive(rendered);
    stock = await list();
    expect(await differing(rendered)).toBe('');
  });

  it('has what a config says after the reboot into its image', async () => {
    const rendered = meetingConfig('rendered-one', 'one');
    expect(await bring(rendered, 'Disrupt')).toBe(false);
    expect(await differing(rendered)).toBe('');
    expect(await instance()).toBe('enabled');
  });

  it(`has what the next config says ${takesLive ? 'by a live update, and after another boot' : 'by a reboot'}`, async () => {
    const rendered = meetingConfig('rendered-two', 'two');
    expect(await bring(rendered, takesLive ? 'Live' : 'Disrupt')).toBe(takesLive);
    expect(await differing(rendered)).toBe('');
    if (takesLive) {
      await reboot();
      expect(await differing(rendered)).toBe('');
    }
    expect(await instance()).toBe('enabled');
  });

  it('is as it was after a reboot into an image without content', async () => {
    // What ostree then takes for edits of /etc.
    if (takesLive) await bring(meetingConfig('rendered-three', 'one'), 'Live');
    const rendered = emptyConfig('rendered-none');
    expect(await bring(rendered, 'Disrupt')).toBe(false);
    expect(await differing(rendered)).toBe('');
    expect(await instance()).not.toBe('enabled');
  });

  it.runIf(takesLive)('has all of a config by a live update', async () => {
    const rendered = liveConfig('rendered-live', 'one');
    expect(await bring(rendered, 'Live')).toBe(true);
    expect(await differing(rendered)).toBe('');
    expect(await instance()).toBe('enabled');
  });

  it.runIf(takesLive)('is as it was after a live update that takes all of it away', async () => {
    const rendered = emptyConfig('rendered-nothing');
    expect(await bring(rendered, 'Live')).toBe(true);
    expect(await differing(rendered)).toBe('');
    expect(await instance()).not.toBe('enabled');
  });

  it('is as it was when it leaves layering for the stock image', async () => {
    await bring(meetingConfig('rendered-last', 'two'), 'Disrupt');
    // What ostree then takes for edits of /etc.
    if (takesLive) await bring(meetingConfig('rendered-lastly', 'one'), 'Live');
    const rendered = emptyConfig('rendered-out');
    await create(rendered);
    await machine.updates.wantStandard('rendered-out');
    const { status } = await arrive(rendered);
    expect(status).toMatchObject({ mode: 'Standard', baseImage: machine.lab.stock });
    expect(await differing(rendered)).toBe('');
    expect(await instance()).not.toBe('enabled');
  });
}
