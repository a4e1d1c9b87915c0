import { describe, expect, test } from 'vitest';
import type { MachineConfigNode } from '../api/machine-config-node.ts';
import { imageLabels } from '../api/names.ts';
import { isAt, policies, render, standardSpec } from '../test/fixtures/node-configs.ts';
import { deadline, patience } from '../test/fixtures/patience.ts';
import { startDaemon } from '../test/fixtures/running-daemon.ts';
import { createTestNode, layerFile, noDirectoryNodes } from '../test/fixtures/test-node.ts';

const KARGS = '/usr/lib/bootc/kargs.d/50-shale.toml';

/** Somebody other than Shale has made an image the next boot, and rebooted. */
describe.skipIf(noDirectoryNodes !== undefined)(
  'after a boot that nobody granted',
  {
    timeout: patience(120_000),
  },
  () => {
    test('a node leaves a layered image when layering is off, though no config names an OS image', async () => {
      await using node = await createTestNode();
      await using daemon = await startDaemon(node);
      const policyDigest = await policies(daemon);
      const standard = standardSpec(policyDigest);
      await render(daemon, 'rendered-1', 'config\n');
      await daemon.want(standard('rendered-1', 'Disrupt'));
      await daemon.until('standard mode', isAt('rendered-1'));

      const image = node.addImage([layerFile(KARGS, 'kargs = ["layered=1"]\n')], {
        [imageLabels.renderedConfig]: 'rendered-1',
        [imageLabels.baseImage]: node.stock,
      });
      const target = { configVersion: { desired: 'rendered-1' }, configImage: { desiredImage: image } };
      await daemon.want({ ...target, imageSigningKeys: 'Disabled', policyDigest });
      await daemon.until('the plan', ({ status }) => status?.plan?.image === image);
      const before = await node.host.bootID();
      await node.backend.stage(image, {
        extraKernelArguments: { remove: [], add: [] },
        signal: deadline(60_000),
      });
      await node.host.reboot('unplanned', deadline(10_000));
      await daemon.until('the image', ({ status }) => status?.configImage?.currentImage === image);
      expect((await node.backend.status(deadline(10_000))).booted.kernelArguments).toContain('layered=1');

      await daemon.want(standard('rendered-1'));
      const isLeaving = ({ status }: MachineConfigNode) =>
        status?.plan !== undefined && status.plan.image === undefined;
      const staged = await daemon.until('the plan to leave', isLeaving);
      expect(staged.status).toMatchObject({ mode: 'Layered', plan: { actions: [{ type: 'Reboot' }] } });
      await daemon.want(standard('rendered-1', 'Disrupt'));
      const out = await daemon.until(
        'standard mode again',
        (object) => isAt('rendered-1')(object) && object.status?.mode === 'Standard',
      );
      expect(out.status).toMatchObject({ baseImage: node.stock });
      expect(out.status?.bootID).not.toBe(before);
      const { booted } = await node.backend.status(deadline(10_000));
      expect(booted.image).toBe(node.stock);
      expect(booted.kernelArguments).not.toContain('layered=1');
    });
  },
);
