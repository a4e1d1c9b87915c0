/** A daemon that asks the stand-ins for soft reboots: where it gets none, it reboots fully. */
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { MachineConfigNode, UpdateRecord } from '../../api/machine-config-node.ts';
import { imageLabels } from '../../api/names.ts';
import type { DigestedPullspec } from '../../api/references.ts';
import type { DaemonOptions } from '../../daemon/loop.ts';
import { OsCommandError, type RunOsCommand } from '../../daemon/os/os-command.ts';
import type { LayerItem } from '../../image/layer/entry.ts';
import { CHRONY, isAt } from '../fixtures/node-configs.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { type DaemonUnderTest, HOLDER, startDaemon } from '../fixtures/running-daemon.ts';
import { layerFile, noDirectoryNodes } from '../fixtures/test-node.ts';
import { createToolNode, type ToolNode } from './tool-node.ts';

const SOFT = layerFile('/usr/lib/systemd/system/soft-reboot.target', '[Unit]\n');
const COMPOSEFS = layerFile('/usr/lib/ostree/prepare-root.conf', '[composefs]\nenabled = yes\n');
const KARGS = layerFile('/usr/lib/bootc/kargs.d/50-shale.toml', 'kargs = ["nosmt"]\n');

describe.skipIf(noDirectoryNodes !== undefined)(
  'a daemon of a pool that allows soft reboots',
  {
    timeout: patience(300_000),
  },
  () => {
    let node: ToolNode;
    let daemon: DaemonUnderTest;
    /** How the machine takes a request for a soft reboot. */
    let rebootSoftly: () => Promise<void>;

    beforeEach(async () => {
      node = await createToolNode('bootc');
      rebootSoftly = node.rebootSoftly;
    });
    afterEach(async () => {
      await daemon[Symbol.asyncDispose]();
      await node[Symbol.asyncDispose]();
    });

    const start = async (options: Pick<DaemonOptions, 'softRebootLimitMs'> = {}) => {
      const boot = node.shutDownAndBoot;
      daemon = await startDaemon({ ...node, boot, rebootSoftly: () => rebootSoftly() }, options);
    };
    const build = (config: string, ...layer: readonly LayerItem[]) =>
      node.addImage([layerFile(CHRONY, config), ...layer], {
        [imageLabels.renderedConfig]: config,
        [imageLabels.baseImage]: node.stock,
      });
    /** @returns the node once it runs the image. */
    const run = async (config: string, image: DigestedPullspec, softReboot = true) => {
      await daemon.want({
        configVersion: { desired: config },
        configImage: { desiredImage: image },
        imageSigningKeys: 'Disabled',
        grant: { level: 'Disrupt', config, image, leaseHolder: HOLDER },
        ...(softReboot ? { softReboot } : {}),
      });
      const object = await daemon.until(config, isAt(config));
      expect(await readFile(path.join(node.root, CHRONY), 'utf8')).toBe(config);
      expect((await node.backend.status(deadline(60_000))).booted.image).toBe(image);
      return lastOf(object);
    };
    const lastOf = ({ status }: MachineConfigNode): UpdateRecord => {
      if (status?.lastUpdate === undefined) throw new Error('the node reports no update');
      return status.lastUpdate;
    };
    const kernelOf = (bootID: string) => bootID.split('+')[0];

    test('leaves the kernel running where bootc says that it can go on, and nowhere else', async () => {
      await start();
      const first = await run('rendered-1', await build('rendered-1', SOFT, COMPOSEFS));
      expect(first.softReboot).toBeUndefined();
      expect(first.source).toContain('no soft reboot: the host does not report');

      const second = await run('rendered-2', await build('rendered-2', SOFT, COMPOSEFS));
      expect(second).toMatchObject({ result: 'Succeeded', softReboot: true, actions: [{ type: 'Reboot' }] });
      expect(second.bootIDBefore).toBe(first.bootIDAfter);
      expect(second.bootIDAfter).toBe(`${first.bootIDAfter}+1`);

      const third = await run('rendered-3', await build('rendered-3', SOFT, COMPOSEFS, KARGS));
      expect(third.softReboot).toBeUndefined();
      expect(third.source).toContain('no soft reboot: kernel arguments change');
      expect(kernelOf(third.bootIDAfter)).not.toBe(kernelOf(first.bootIDAfter));

      const fourth = await run('rendered-4', await build('rendered-4', SOFT, COMPOSEFS, KARGS), false);
      expect(fourth.softReboot).toBeUndefined();
      expect(fourth.source).not.toContain('soft reboot');
    });

    test('plans no soft reboot where ostree would refuse it, whatever bootc says', async () => {
      await start();
      await run('rendered-1', await build('rendered-1', SOFT, COMPOSEFS));
      const second = await run('rendered-2', await build('rendered-2', SOFT));
      expect(second.softReboot).toBeUndefined();
      expect(second.source).toContain('no soft reboot: the host does not report');
    });

    test('reboots fully where nothing has come of it in time', async () => {
      await start({ softRebootLimitMs: 50 });
      await run('rendered-1', await build('rendered-1', SOFT, COMPOSEFS));
      rebootSoftly = async () => undefined;
      const second = await run('rendered-2', await build('rendered-2', SOFT, COMPOSEFS));
      expect(second.softReboot).toBeUndefined();
      expect(second.source).toContain('did not happen within 0.05 s');
    });

    test('reboots fully where it came back to what it ran', async () => {
      await start();
      await run('rendered-1', await build('rendered-1', SOFT, COMPOSEFS));
      rebootSoftly = async () => {
        await node.loseNextRoot();
        await node.rebootSoftly();
      };
      const second = await run('rendered-2', await build('rendered-2', SOFT, COMPOSEFS));
      expect(second.softReboot).toBeUndefined();
      expect(second.source).toContain('did not boot the target');
    });
  },
);

/** What the real one said, on a host with one deployment that is written and not booted. */
const { refusals } = JSON.parse(
  readFileSync(path.join(import.meta.dirname, 'recorded/prepare-soft-reboot.json'), 'utf8'),
) as { refusals: { index: string; host: string; stderr: string }[] };

describe.skipIf(noDirectoryNodes !== undefined)('the stand-in for ostree admin prepare-soft-reboot', () => {
  let node: ToolNode;
  beforeEach(async () => {
    node = await createToolNode('bootc');
  });
  afterEach(() => node[Symbol.asyncDispose]());

  test('refuses in the words of the real one', { timeout: patience(120_000) }, async () => {
    const signal = deadline(60_000);
    let run: RunOsCommand | undefined;
    const backend = node.backendWith((inner) => {
      run = inner;
      return inner;
    });
    const said = [];
    for (const { index, host } of refusals) {
      const extraKernelArguments = {
        remove: [],
        add: host === 'with another kernel argument' ? ['nosmt'] : [],
      };
      const composefs = host === 'without composefs' ? [] : [COMPOSEFS];
      await backend.stage(await node.addImage([SOFT, ...composefs]), { extraKernelArguments, signal });
      await backend.finalizeStaged(new Map(), signal);
      const command = ['ostree', 'admin', 'prepare-soft-reboot', '--sysroot=/', index] as const;
      const refused = await run?.([...command], { timeoutMs: 60_000, signal }).catch(
        (error: unknown) => error,
      );
      said.push({ index, host, stderr: refused instanceof OsCommandError ? refused.stderr : refused });
    }
    expect(said).toEqual(refusals);
  });
});
