import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { isStartupTaint } from '../../../api/startup-taint.ts';
import { conditionIsTrue } from '../../../cluster/update-object.ts';
import { patience } from '../../fixtures/patience.ts';
import { FIRST_TIME_MS } from '../lab.ts';
import type { LabSystem } from '../lab-node.ts';
import type { FreshMachine } from './fresh-machine.ts';
import { type NewNodesLab, POOL, startNewNodesLab } from './new-nodes-lab.ts';
import { CREDENTIALS } from './stock-entries.ts';

interface Choice {
  readonly system: LabSystem;
  /** Whether a tool of the host can switch it before the kubelet starts. The host has cloud-init then. */
  readonly canSwitch: boolean;
  readonly skip: boolean;
}

const TAINT = 'shale.dev/not-configured:NoSchedule';

/** What holds of a machine that becomes a node, whatever keeps its operating system. */
export function newNodesContract(what: string, { system, canSwitch, skip }: Choice): void {
  describe.skipIf(skip)(`a fresh machine ${what}`, { timeout: patience(900_000) }, () => {
    let lab: NewNodesLab;

    beforeAll(
      async () => {
        lab = await startNewNodesLab(system);
      },
      patience(2 * FIRST_TIME_MS),
    );
    afterAll(() => lab?.[Symbol.asyncDispose](), patience(120_000));

    /** No pod before the node runs its pool's target, and says so. */
    const expectPodsAfterUpdate = (name: string) => {
      const first = lab.pods.firstPodOn(name);
      expect(conditionIsTrue(first?.reported?.conditions, 'Updated')).toBe(true);
      expect(first?.reported?.configImage?.currentImage).toBe(lab.image);
    };
    const note = (name: string, machine: FreshMachine) => {
      const first = lab.pods.firstPodOn(name);
      if (first === undefined) throw new Error(`${name} takes no pods`);
      const seconds = [machine.joinedAfter ?? 0, (first.atMs - machine.switchedOnAt) / 1000];
      const [joined, ready] = seconds.map((each) => each.toFixed(1));
      process.stderr.write(
        `${name}: ${machine.boots} boots, joined after ${joined} s, takes pods after ${ready} s\n`,
      );
    };

    it('that comes with the image of its pool is Updated without a reboot', async () => {
      const printed = await lab.shale('node', 'image', POOL, '-o', 'json');
      expect(JSON.parse(printed.stdout)).toMatchObject({ image: lab.image, proof: 'None' });
      const machine = await lab.add({ name: 'with-image', image: lab.image, taints: [TAINT] });
      const node = await lab.inService('with-image');
      expect(node.spec?.taints?.some(isStartupTaint) ?? false).toBe(false);
      expectPodsAfterUpdate('with-image');
      expect(machine.boots).toBe(1);
      expect(await machine.starts()).toEqual([{ image: 'pool', taints: [] }]);
      expect(await machine.sh('cat /etc/chrony.conf')).toBe('server a');
      note('with-image', machine);
    });

    it('that boots the stock image is Updated after one reboot', async () => {
      const { stdout: ignition, exitCode } = await lab.shale(
        ...['node', 'ignition', POOL, '--auth-file', CREDENTIALS],
      );
      expect(exitCode).toBe(0);
      const machine = await lab.add({ name: 'with-stock', image: lab.stock, ignition });
      await lab.inService('with-stock');
      expectPodsAfterUpdate('with-stock');
      expect(machine.boots).toBe(2);
      const before = canSwitch ? [] : [{ image: 'stock', taints: [TAINT] }];
      expect(await machine.starts()).toEqual([...before, { image: 'pool', taints: [TAINT] }]);
      expect(await machine.sh('cat /etc/chrony.conf')).toBe('server a');
      // Neither the strict policy of the first boot nor its mount has come along.
      expect(await machine.sh('grep -c policy.json /proc/self/mountinfo || true')).toBe('0');
      expect(await machine.sh('systemctl is-failed shale-first-boot.service || true')).toBe('inactive');
      note('with-stock', machine);
    });

    it.skipIf(!canSwitch)(
      'that cloud-init sets up joins after one reboot, as Cluster API has it',
      async () => {
        const printed = await lab.shale('node', 'cloud-init', POOL, '--auth-file', CREDENTIALS);
        const [command] = UserData.parse(parse(printed.stdout)).bootcmd;
        const userData = clusterApiUserData(command);
        const machine = await lab.add({ name: 'with-cloud-init', image: lab.stock, userData });
        await lab.inService('with-cloud-init');
        expectPodsAfterUpdate('with-cloud-init');
        expect(machine.boots).toBe(2);
        expect(await machine.starts()).toEqual([{ image: 'pool', taints: [TAINT] }]);
        expect(await machine.sh('cloud-init status --wait || true')).toContain('status: done');
        expect(await machine.sh(`cat ${JOINED}`)).toBe('join');
        note('with-cloud-init', machine);
      },
    );

    it('that comes back after weeks, with an image that is pruned by now, is Updated after one reboot', async () => {
      const machine = lab.machine('with-image');
      const before = lab.image;
      await machine.switchOff();
      await lab.forget('with-image');
      // The nodes that are there prove it, so that new nodes boot it from then on.
      await lab.change('server b');
      expect(lab.image).not.toBe(before);
      await lab.prune(before);
      machine.switchOn();
      await lab.inService('with-image');
      expectPodsAfterUpdate('with-image');
      expect(machine.boots).toBe(2);
      expect(await machine.sh('cat /etc/chrony.conf')).toBe('server b');
      note('with-image', machine);
    });

    it('that moves to another pool runs the image of that pool after one reboot', async () => {
      const machine = lab.machine('with-stock');
      const before = machine.boots;
      const { spec, status } = await lab.move('with-stock', 'infra');
      expect(spec.pool.name).toBe('infra');
      expect(status).toMatchObject({ mode: 'Layered', lastUpdate: { result: 'Succeeded' } });
      expect(machine.boots).toBe(before + 1);
      expect(await machine.sh('cat /etc/chrony.conf')).toBe('server a');
    });
  });
}

const UserData = z.object({ bootcmd: z.tuple([z.string()]) });
const JOIN_CONFIG = '/run/kubeadm/kubeadm-join-config.yaml';
const JOINED = '/var/lib/joined';

/**
 * As Cluster API writes it: the config of `kubeadm join` is below /run, and runcmd runs once. @param boot of
 * bootCommands.
 */
function clusterApiUserData(boot: string): string {
  const files = [{ path: JOIN_CONFIG, permissions: '0640', content: 'join\n' }];
  return `#cloud-config\n${JSON.stringify({
    write_files: files,
    bootcmd: [boot],
    runcmd: [`cat ${JOIN_CONFIG} >> ${JOINED}`],
  })}\n`;
}
