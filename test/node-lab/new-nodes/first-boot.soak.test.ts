/** The order of units on a first boot: the switch comes before the kubelet. */
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from 'vitest';
import { nodePaths } from '../../../api/names.ts';
import { isAt } from '../../fixtures/node-configs.ts';
import { CONFIG, text } from '../lab-updates.ts';
import type { BootLabOptions } from '../virtual-machine/boot-lab.ts';
import { createDisk } from '../virtual-machine/cached-disk.ts';
import { describeMachine } from '../virtual-machine/describe-machine.ts';
import { FIRST_BOOT_RECIPE } from '../virtual-machine/first-boot-recipe.ts';
import { VIRTUAL_MACHINE_LAYER } from '../virtual-machine/stock-layer.ts';
import { ostreeSystem } from '../virtual-machine/virtual-system.ts';
import { createPool, shaleNode } from './pool-with-image.ts';
import { KUBELET_ENTRIES, KUBELET_STARTS, parseStart } from './stock-entries.ts';

const STOCK = [...VIRTUAL_MACHINE_LAYER, ...KUBELET_ENTRIES];
const TAINT = 'shale.dev/not-configured:NoSchedule';
/** What of the pool's config only Ignition can set up. */
const SECTIONS = {
  passwd: { groups: [{ name: 'operators', gid: 2000 }] },
  storage: {
    filesystems: [{ device: '/dev/vdc', format: 'ext4', label: 'data', wipeFilesystem: true }],
  },
};
/** What the pool's image is made of. */
const RENDERED = {
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineConfig',
  metadata: { name: 'rendered-1' },
  spec: {
    config: {
      ignition: { version: '3.5.0' },
      storage: { files: [{ path: CONFIG, mode: 0o644, contents: { source: 'data:,rendered-1%0A' } }] },
    },
  },
};
const DATA_DISK_BYTES = 64 * 1024 * 1024;

/** How a machine is given the output of `shale node`, and what it did with it. */
interface Way {
  readonly name: 'Ignition' | 'cloud-init';
  /** As of ensureDisk. */
  readonly firstBootArguments: readonly string[];
  readonly options: BootLabOptions;
  /** @param sh runs a command line on the machine. */
  check(sh: (line: string) => Promise<string>): Promise<void>;
}

const WAYS: readonly Way[] = [
  {
    name: 'cloud-init',
    // None, but the machine is new.
    firstBootArguments: [],
    options: {
      provision: async ({ client, kubeconfig, stock }, directory) => {
        await createPool(client, stock, {});
        const seed = path.join(directory, 'seed');
        await mkdir(seed);
        await writeFile(path.join(seed, 'meta-data'), 'instance-id: lab-1\n');
        await writeFile(
          path.join(seed, 'user-data'),
          await shaleNode(kubeconfig(), path.join(directory, 'home'), 'cloud-init'),
        );
        const drive = `driver=vvfat,node-name=seed,dir=${seed},label=CIDATA,read-only=on`;
        return {
          disks: [],
          qemuArguments: ['-blockdev', drive, '-device', 'virtio-blk-pci,drive=seed'],
        };
      },
    },
    check: async (sh) => {
      const result = '/run/cloud-init/result.json';
      const ended = await sh(`until test -e ${result}; do sleep 1; done; cat ${result}`);
      expect(JSON.parse(ended)).toMatchObject({ v1: { errors: [] } });
      expect(await sh('cloud-init schema --system 2>&1')).toMatch(/valid/i);
    },
  },
  {
    name: 'Ignition',
    firstBootArguments: ['ignition.firstboot=1', 'ignition.platform.id=qemu', 'cloud-init=disabled'],
    options: {
      provision: async ({ client, kubeconfig, stock }, directory) => {
        await createPool(client, stock, SECTIONS);
        const file = path.join(directory, 'worker.ign');
        await writeFile(file, await shaleNode(kubeconfig(), path.join(directory, 'home'), 'ignition'));
        const data = path.join(directory, 'data.raw');
        await createDisk(data, DATA_DISK_BYTES);
        return { disks: [data], qemuArguments: ['-fw_cfg', `name=opt/com.coreos/config,file=${file}`] };
      },
    },
    check: async (sh) => {
      expect(await sh('lsblk --noheadings --output FSTYPE,LABEL /dev/vdc')).toMatch(/^ext4 +data$/);
      expect(await sh('getent group operators')).toBe('operators:x:2000:');
      // ostree would want the programs of a host with SELinux.
      expect(await sh('ls /etc/selinux/config 2>&1 || true')).toContain('No such file');
    },
  },
];

/**
 * The first boot of a machine with the stock image, by the real programs, from firmware and bootloader on. Nothing on
 * it can switch the image before the kubelet starts, so that one reboot is the daemon's; bootc/new-nodes.soak.test.ts
 * has hosts that can.
 */
for (const { name, firstBootArguments, options, check } of WAYS) {
  const title = `a machine that ${name} sets up becomes a node of its pool after one reboot`;

  const system = ostreeSystem(FIRST_BOOT_RECIPE, firstBootArguments);

  describeMachine(title, STOCK, { name, system, ...options }, (machine) => {
    const { sh } = machine;
    const starts = async () => (await sh(`cat ${KUBELET_STARTS}`)).split('\n').map(parseStart);
    const stock = { image: 'stock', taints: [TAINT] };

    it('has tried to switch before the kubelet started, which has the startup taint', async () => {
      await machine.lab.timed(`${name}: until the kubelet runs`, () =>
        sh('until systemctl is-active --quiet kubelet.service; do sleep 1; done'),
      );
      await check(sh);
      expect(await sh('systemctl is-failed shale-first-boot.service || true')).toBe('failed');
      expect(await sh('journalctl --unit shale-first-boot.service --output cat')).toContain(
        'This machine has neither bootc nor rpm-ostree',
      );
      const property = (unit: string, of: string) => sh(`systemctl show --property=${of} --value ${unit}`);
      const ended = Number(await property('shale-first-boot.service', 'InactiveEnterTimestampMonotonic'));
      const started = Number(await property('kubelet.service', 'ExecMainStartTimestampMonotonic'));
      expect(ended).toBeGreaterThan(0);
      expect(started).toBeGreaterThan(ended);
      expect(await starts()).toEqual([stock]);
    });

    it('boots its pool’s image once, and tries no switch any more', async () => {
      const image = await machine.updates.build('rendered-1', undefined, [
        text(nodePaths.imageConfig, JSON.stringify(RENDERED)),
      ]);
      await machine.updates.want('rendered-1', image, 'Disrupt');
      const { status } = await machine.lab.timed(`${name}: until it is updated`, () =>
        machine.lab.until('rendered-1', isAt('rendered-1')),
      );
      expect(status).toMatchObject({ mode: 'Layered', lastUpdate: { result: 'Succeeded' } });
      expect(await sh(`cat ${CONFIG}`)).toBe('rendered-1');
      expect(await starts()).toEqual([stock, { ...stock, image: 'pool' }]);
      expect(await sh('systemctl is-failed shale-first-boot.service || true')).toBe('inactive');
    });
  });
}
