/** A daemon and packages over rpm-ostree's stand-in: answers that come late or not at all. */
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MachineConfigs } from '../../api/machine-config.ts';
import type { MachineConfigNodeSpec } from '../../api/machine-config-node.ts';
import type { DigestedPullspec } from '../../api/references.ts';
import type { ExtraPackages, OsBackend } from '../../daemon/os/backend.ts';
import { DetectedBackend } from '../../daemon/os/detect-backend.ts';
import { OsCommandError, type RunOsCommand } from '../../daemon/os/os-command.ts';
import type { LayerItem } from '../../image/layer/entry.ts';
import { noPackages, osPackages } from '../../machineconfig/os-packages.ts';
import { CHRONY, isAt, policies, standardSpec } from '../fixtures/node-configs.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { startDaemon } from '../fixtures/running-daemon.ts';
import { layerFile, noDirectoryNodes } from '../fixtures/test-node.ts';
import { createToolNode, type ToolNode } from './tool-node.ts';

const usbguard = osPackages({ extensions: ['usbguard'], kernelType: 'default' });
const realtime = osPackages({ extensions: ['sysstat'], kernelType: 'realtime' });
const kata = osPackages({ extensions: ['sandboxed-containers'], kernelType: 'default' });
const IN_IMAGE = '/usr/share/rpm-ostree/extensions';
const KATA = `${IN_IMAGE}/kata-containers.rpm`;
/** Each command of a stand-in is a process of Node's. */
const TEST_MS = 300_000;

describe.skipIf(noDirectoryNodes !== undefined)(
  'packages on a host of rpm-ostree',
  { timeout: patience(TEST_MS) },
  () => {
    let node: ToolNode;
    const signal = deadline(1_200_000);
    const stage = (
      image: DigestedPullspec,
      extraPackages: ExtraPackages,
      backend: OsBackend = node.backend,
    ) => backend.stage(image, { extraKernelArguments: { remove: [], add: [] }, extraPackages, signal });
    const reboot = async () => {
      await node.backend.finalizeStaged(new Map(), signal);
      await node.shutDownAndBoot();
    };
    const installed = async () => {
      const directory = path.join(node.root, 'usr/lib/packages');
      if (!existsSync(directory)) return [];
      const names = (await readdir(directory)).sort();
      const states = names.map(async (name) => [
        name,
        (await readFile(path.join(directory, name), 'utf8')).trim(),
      ]);
      return (await Promise.all(states)).filter(([, state]) => state === 'installed').map(([name]) => name);
    };

    beforeEach(async () => {
      node = await createToolNode('rpm-ostree');
    });
    afterEach(() => node[Symbol.asyncDispose]());

    it('are there after the reboot, change with the image, and go again', async () => {
      const first = await stage(node.stock, { remove: noPackages, add: usbguard });
      expect((await node.backend.status(signal)).staged?.id).toBe(first.id);
      expect((await stage(node.stock, { remove: noPackages, add: usbguard })).id).toBe(first.id);
      await reboot();
      expect(await installed()).toEqual(['usbguard']);

      const image = await node.addImage([layerFile(CHRONY, 'server a\n')]);
      await stage(image, { remove: usbguard, add: realtime });
      await reboot();
      expect((await node.backend.status(signal)).booted.image).toBe(image);
      expect(await installed()).toEqual([...realtime.installed]);

      await stage(node.stock, { remove: realtime, add: noPackages });
      await reboot();
      expect((await node.backend.status(signal)).booted.image).toBe(node.stock);
      expect(await installed()).toEqual([]);
    });

    it('go back to what was booted before without asking the tool', async () => {
      await stage(node.stock, { remove: noPackages, add: usbguard });
      await reboot();
      const backend = node.backendWith((run) => async (command, options) => {
        if (command[0] === 'rpm-ostree' && command[1] !== 'status') throw new Error(command.join(' '));
        return run(command, options);
      });
      await stage(node.stock, { remove: usbguard, add: noPackages }, backend);
      await reboot();
      expect(await installed()).toEqual([]);
    });

    it('leave nothing behind when they can’t be had', async () => {
      const unknown = { installed: ['no-such-package'], removed: [] };
      await expect(stage(node.stock, { remove: noPackages, add: unknown })).rejects.toThrow(
        'Packages not found: no-such-package',
      );
      expect((await node.backend.status(signal)).staged).toBeUndefined();
    });

    it('are not booted half', async () => {
      const image = await node.addImage([layerFile(CHRONY, 'server a\n')]);
      const stop = new AbortController();
      const backend = node.backendWith((run) => async (command, options) => {
        if (command[1] === 'override') stop.abort(new Error('the daemon ends'));
        return run(command, options);
      });
      const staging = backend.stage(image, {
        extraKernelArguments: { remove: [], add: [] },
        extraPackages: { remove: noPackages, add: realtime },
        signal: stop.signal,
      });
      await expect(staging).rejects.toThrow('the daemon ends');
      await node.shutDownAndBoot();
      expect((await node.backend.status(signal)).booted.image).toBe(node.stock);
      await stage(image, { remove: noPackages, add: realtime });
      await reboot();
      expect(await installed()).toEqual([...realtime.installed]);
    });

    it('survive a restart of rpm-ostree’s daemon that came too late to be told', async () => {
      let isDone = false;
      const around =
        (run: RunOsCommand): RunOsCommand =>
        async (command, options) => {
          const output = await run(command, options);
          if (command[1] !== 'install' || isDone) return output;
          isDone = true;
          throw new OsCommandError(command, 'exit code 1', {
            exitCode: 1,
            stderr: 'error: Bus owner changed, aborting.\n',
          });
        };
      await stage(node.stock, { remove: noPackages, add: usbguard }, node.backendWith(around));
      await reboot();
      expect(await installed()).toEqual(['usbguard']);
    });

    it('come from the image of extensions, whose repository the host knows no longer than need be', async () => {
      const rpm: LayerItem = layerFile(KATA, 'rpm');
      const repository = await node.addImage([rpm, layerFile(`${IN_IMAGE}/repodata/repomd.xml`, '<x/>')]);
      await expect(stage(node.stock, { remove: noPackages, add: kata })).rejects.toThrow('not found: kata');
      await stage(node.stock, { remove: noPackages, add: kata, repository });
      expect(existsSync(path.join(node.root, 'etc/yum.repos.d/coreos-extensions.repo'))).toBe(false);
      expect(existsSync(path.join(node.root, 'var/lib/shale/extensions'))).toBe(false);
      await reboot();
      expect(await installed()).toEqual(['kata-containers']);
    });

    it('come and go with a rendered config', async () => {
      await using daemon = await startDaemon({ ...node, boot: node.shutDownAndBoot });
      const spec = standardSpec(await policies(daemon));
      const want = async (name: string, extensions: string[], kernelType = 'default') => {
        await daemon.client.create(MachineConfigs, {
          apiVersion: 'machineconfiguration.openshift.io/v1',
          kind: 'MachineConfig',
          metadata: { name },
          spec: { config: { ignition: { version: '3.4.0' } }, extensions, kernelType },
        });
        const wanted: Partial<MachineConfigNodeSpec> = spec(name, 'Disrupt');
        await daemon.want(wanted);
        return daemon.until(name, isAt(name));
      };
      const { status } = await want('rendered-1', ['usbguard', 'sysstat'], 'realtime');
      expect(status?.lastUpdate?.actions).toEqual([{ type: 'Reboot' }]);
      expect(await installed()).toEqual([...realtime.installed, 'usbguard']);
      await want('rendered-2', ['usbguard']);
      expect(await installed()).toEqual(['usbguard']);
      await want('rendered-3', []);
      expect(await installed()).toEqual([]);
    });
  },
);

describe.skipIf(noDirectoryNodes !== undefined)('packages on a host of bootc', () => {
  it('are refused before anything is done', { timeout: patience(TEST_MS) }, async () => {
    await using node = await createToolNode('bootc');
    const staging = node.backend.stage(node.stock, {
      extraKernelArguments: { remove: [], add: [] },
      extraPackages: { remove: noPackages, add: usbguard },
      signal: deadline(60_000),
    });
    await expect(staging).rejects.toThrow('bootc keeps the host');
  });

  it('are rpm-ostree’s to bring and to take away where that is there, too', {
    timeout: patience(TEST_MS),
  }, async () => {
    await using node = await createToolNode('bootc');
    const signal = deadline(600_000);
    const { bootedBy, boot } = hostOfBoth(node, signal);
    const extraKernelArguments = { remove: [], add: [] };
    const first = bootedBy('bootc');
    expect(await first.tool(signal)).toMatchObject({ name: 'bootc', installsPackages: true });
    const add = { remove: noPackages, add: usbguard };
    const staged = await first.stage(node.stock, { extraKernelArguments, extraPackages: add, signal });
    expect((await first.tool(signal)).name).toBe('rpm-ostree');
    expect((await first.status(signal)).staged).toEqual(staged);
    await boot(first);
    expect(existsSync(path.join(node.root, 'usr/lib/packages/usbguard'))).toBe(true);

    const second = bootedBy('rpm-ostree');
    const remove = { remove: usbguard, add: noPackages };
    await second.stage(node.stock, { extraKernelArguments, extraPackages: remove, signal });
    await boot(second);
    expect((await bootedBy('bootc').status(signal)).booted.image).toBe(node.stock);
  });
});

/** A host with both tools, as detectBackend finds it after each boot. */
function hostOfBoth(node: ToolNode, signal: AbortSignal) {
  const backendOf = (tool: 'bootc' | 'rpm-ostree') => node.backendWith((run) => run, tool);
  return {
    bootedBy: (tool: 'bootc' | 'rpm-ostree') =>
      new DetectedBackend(async ({ packages }) => backendOf(packages ? 'rpm-ostree' : tool)),
    boot: async (backend: OsBackend) => {
      await backend.finalizeStaged(new Map(), signal);
      await node.shutDownAndBoot();
    },
  };
}
