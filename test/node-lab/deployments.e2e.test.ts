/** Deployments of ostree under a running systemd: mounts, /etc merged at shutdown, a read-only /sysroot. */
import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DigestedPullspec, parseDigestedPullspec } from '../../api/references.ts';
import { applyLive, verifyLive } from '../../daemon/content/live/live-apply.ts';
import { noLabels } from '../../daemon/host/selinux-labels.ts';
import type { ImageSource, SourceLayer } from '../../daemon/os/ostree/image-source.ts';
import { OstreeBackend } from '../../daemon/os/ostree/ostree-backend.ts';
import type { LayerItem } from '../../image/layer/entry.ts';
import { createNode, removeNode } from '../../workshop/sandbox/node/create.ts';
import { directoryNodeLayout, readDirectoryMachine } from '../../workshop/sandbox/node/directory-host.ts';
import { type MemoryImage, memorySource } from '../../workshop/sandbox/node/memory-source.ts';
import { type BootedNode, bootSystemdNode } from '../../workshop/sandbox/systemd-node/node.ts';
import { rootfsLayer } from '../../workshop/sandbox/systemd-node/rootfs-archive.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { layerFile } from '../fixtures/test-node.ts';
import { FIRST_TIME_MS, labRootfs, noLab } from './lab.ts';

const UNIT = '/usr/lib/systemd/system/lab.service';
const CONFIG = '/etc/lab.conf';
const UNIT_TEXT = `[Service]
ExecStart=/bin/sh -c 'cat ${CONFIG}; exec sleep infinity'
[Install]
WantedBy=multi-user.target
`;
const WANTS = '/etc/systemd/system/multi-user.target.wants/lab.service';
const extraKernelArguments = { remove: [], add: [] };

/** @returns the file that the tests change, the service that reads it, and its link as `systemctl enable` makes it. */
const layer = (config: string, more: readonly LayerItem[] = []): readonly LayerItem[] => [
  layerFile(UNIT, UNIT_TEXT),
  layerFile(CONFIG, config),
  { type: 'symlink', path: WANTS, target: UNIT, uid: 0, gid: 0 },
  ...more,
];

/** An image of a whole distribution takes seconds to stage. */
const TEST_MS = 90_000;

describe.skipIf(noLab !== undefined)(
  'deployments of a machine with systemd',
  { timeout: patience(TEST_MS) },
  () => {
    let dir: string;
    let node: BootedNode;
    let source: ImageSource;
    const images = new Map<DigestedPullspec, MemoryImage>();
    const signal = deadline(FIRST_TIME_MS);

    const addImage = (digit: string, items: readonly LayerItem[]): DigestedPullspec => {
      const name = parseDigestedPullspec(`registry.test:5000/os/image@sha256:${digit.repeat(64)}`);
      images.set(name, { labels: {}, layers: [items] });
      return name;
    };
    const read = (name: string) => readFile(path.join(node.host.root, name), 'utf8');
    const sh = async (line: string) =>
      (await node.machine.run(['sh', '-c', line], { timeoutMs: 30_000, signal })).trim();
    const mainPid = () => sh('systemctl show --property=MainPID --value lab.service');
    const reboot = async () => {
      await node.host.reboot('the test', signal);
      expect(await node.machine.ended()).toBe('rebooting');
      node = await bootSystemdNode(dir, source, signal);
    };

    beforeAll(async () => {
      source = ontoRootfs(await labRootfs(), memorySource(images));
      dir = await mkdtemp(path.join(tmpdir(), 'shale-lab-'));
      await createNode({ dir, name: 'lab', image: addImage('1', layer('one\n')), source, signal });
      node = await bootSystemdNode(dir, source, signal);
    }, patience(FIRST_TIME_MS));
    afterAll(async () => {
      await node?.machine.kill();
      if (dir !== undefined) await removeNode(dir);
    });

    it('applies an image live and restarts the service: another process, the same boot', async () => {
      const [pid, bootID] = [await mainPid(), await node.host.bootID()];
      const added = layerFile('/usr/share/lab', 'live\n');
      const image = addImage('2', layer('two\n', [added]));
      const staged = await node.backend.stage(image, { extraKernelArguments, signal });
      const { booted } = await node.backend.status(signal);
      const { host, services } = node;
      await host.unlockUsr(signal);
      await applyLive({
        host,
        relabel: noLabels,
        booted,
        staged,
        beforeStep: async () => undefined,
        signal,
      });
      await services.restart('lab.service', signal);
      expect(await verifyLive({ host, booted, staged, signal })).toEqual([]);
      expect(await sh(`cat ${CONFIG} /usr/share/lab`)).toBe('two\nlive');
      expect(await mainPid()).not.toBe(pid);
      expect(await sh('journalctl --output=cat --lines=20 --unit=lab.service')).toContain('two');
      expect(await node.host.bootID()).toBe(bootID);
    });

    it('sees what was changed below /usr in place, though size and time are as they were', async () => {
      const { host, backend } = node;
      const { booted, staged = booted } = await backend.status(signal);
      expect(await verifyLive({ host, booted, staged, signal })).toEqual([]);
      await sh(
        'touch -r /usr/share/lab /run/time; echo LIVE > /usr/share/lab; touch -r /run/time /usr/share/lab',
      );
      await sh('sed -i s/Debian/debian/ /usr/lib/os-release');
      await sh(
        'cp -p /usr/bin/tty /run/tty; dd if=/dev/zero of=/usr/bin/tty bs=1 count=8 conv=notrunc; touch -r /run/tty /usr/bin/tty',
      );
      expect(await verifyLive({ host, booted, staged, signal })).toEqual([
        '/usr/bin/tty',
        '/usr/lib/os-release',
        '/usr/share/lab',
      ]);
    });

    it('reboots into what was staged, with the edits of its admin, and back', async () => {
      const bootID = await node.host.bootID();
      await writeFile(path.join(node.host.root, 'etc/motd'), 'edited here\n');
      await node.backend.stage(addImage('3', layer('three\n', [layerFile('/usr/share/lab', 'booted\n')])), {
        extraKernelArguments,
        signal,
      });
      await node.backend.finalizeStaged(new Map(), signal);
      await reboot();
      expect(await node.host.bootID()).not.toBe(bootID);
      expect(await read('/usr/share/lab')).toBe('booted\n');
      expect(await read('/etc/motd')).toBe('edited here\n');
      expect(await node.services.state('lab.service', signal)).toBe('active');

      await node.backend.rollback(signal);
      await reboot();
      expect((await node.backend.status(signal)).booted.image).toContain('1'.repeat(64));
      expect(await node.services.state('lab.service', signal)).toBe('active');
    });

    it('stages, finalizes and cleans up where the host keeps /sysroot read-only', async () => {
      await sh('ostree config --repo=/sysroot/ostree/repo set sysroot.readonly true');
      await sh('mount -o remount,bind,ro /sysroot');
      const isReadOnly = () => sh('test -w /sysroot/ostree/repo && echo no || echo yes');
      expect(await isReadOnly()).toBe('yes');
      const { sysroot } = directoryNodeLayout(dir);
      const { deployment } = await readDirectoryMachine(directoryNodeLayout(dir));
      // As the daemon's pod sees them: its own mount of the same sysroot can be written to
      // (daemon/host/writable-mounts.ts).
      const backend = new OstreeBackend({
        root: node.host.root,
        sysroot,
        source,
        run: node.machine.run,
        commandSysroot: '/',
        commandPath: (place) => path.join('/sysroot', path.relative(sysroot, place)),
        bootedDirectory: async () => path.join(sysroot, deployment),
      });
      const image = addImage('4', layer('four\n', [layerFile('/usr/share/lab', 'read-only\n')]));
      const staged = await backend.stage(image, { extraKernelArguments, signal });
      expect(staged.image).toBe(image);
      await backend.finalizeStaged(new Map(), signal);
      await backend.cleanup(signal);
      expect(await isReadOnly()).toBe('yes');
      await reboot();
      expect(await read('/usr/share/lab')).toBe('read-only\n');
    });
  },
);

/** @returns a source whose images have the root file system as their lowest layer. */
function ontoRootfs(rootfs: string, source: ImageSource): ImageSource {
  const lowest: SourceLayer = {
    diffId: `sha256:${'0'.repeat(64)}`,
    digest: `sha256:${'0'.repeat(64)}`,
    size: 0,
    read: () => rootfsLayer(rootfs),
  };
  return {
    open: async (image, signal) => {
      const { labels, layers } = await source.open(image, signal);
      return { labels, layers: [lowest, ...layers] };
    },
  };
}
