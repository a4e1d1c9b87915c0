/** The loop of pinned images beside a daemon that updates: pulled, pinned, reported, let go. */
import { describe, expect, test } from 'vitest';
import type { MachineConfigNode } from '../api/machine-config-node.ts';
import { PinnedImageSets } from '../api/pinned-image-set.ts';
import { isAt, policies, render, standardSpec } from '../test/fixtures/node-configs.ts';
import { patience } from '../test/fixtures/patience.ts';
import { startDaemon } from '../test/fixtures/running-daemon.ts';
import { RuntimeStandIn } from '../test/fixtures/runtime-stand-in.ts';
import { createTestNode, noDirectoryNodes } from '../test/fixtures/test-node.ts';
import { keepPinnedImages } from './pinned-images/pinned-images-loop.ts';

const imageOf = (digit: string) => `registry.example.com/apps/till@sha256:${digit.repeat(64)}`;
const [A, B] = [imageOf('a'), imageOf('b')] as const;

const conditionOf = ({ status }: MachineConfigNode, type: string) => {
  const found = status?.conditions?.find((each) => each.type === `PinnedImageSets${type}`);
  return found && `${found.status} ${found.message}`;
};

describe.skipIf(noDirectoryNodes !== undefined)('images that a node has to keep', () => {
  test('are pulled, pinned and reported beside updates, and let go with the set', {
    timeout: patience(120_000),
  }, async () => {
    await using node = await createTestNode();
    const runtime = new RuntimeStandIn(node.host.root, 'cri-o');
    const ports = {
      ...node,
      services: { ...node.services, ...runtime.services },
      runOnHost: runtime.run,
      images: {
        open: async () => ({ labels: {}, layers: [] }),
      },
    };
    await using daemon = await startDaemon(node, {
      ports,
      backgroundTasks: [keepPinnedImages({ reserveBytes: 0, backoff: { firstMs: 50, longestMs: 500 } })],
    });
    const spec = standardSpec(await policies(daemon));
    await render(daemon, 'rendered-1', 'one\n');
    const { metadata } = await daemon.client.create(PinnedImageSets, {
      apiVersion: 'machineconfiguration.openshift.io/v1',
      kind: 'PinnedImageSet',
      metadata: { name: 'apps' },
      spec: { pinnedImages: [{ name: A }, { name: B }] },
    });
    const { generation = 0 } = metadata;
    const pinnedImages = { sets: [{ name: 'apps', generation }], containerRuntime: 'cri-o' as const };
    runtime.refusals.set(B, 'FATA[0000] pulling image: manifest unknown');
    await daemon.want({ ...spec('rendered-1', 'Disrupt'), pinnedImages });
    const failed = await daemon.until(
      'the failure',
      (object) => conditionOf(object, 'Degraded')?.startsWith('True') === true,
    );
    expect(conditionOf(failed, 'Degraded')).toContain('PinnedImageSet apps: crictl pull');
    expect(failed.status?.pinnedImageSets?.[0]?.lastFailedGenerationError).toContain('manifest unknown');
    expect(runtime.pinned()).toEqual([]);

    runtime.refusals.clear();
    const pinned = await daemon.until(
      'both images and the update',
      (object) =>
        object.status?.pinnedImageSets?.[0]?.currentGeneration === generation && isAt('rendered-1')(object),
    );
    expect(pinned.status?.pinnedImageSets).toEqual([
      { name: 'apps', desiredGeneration: generation, currentGeneration: generation },
    ]);
    expect(conditionOf(pinned, 'Degraded')).toBe('False No image has failed');
    expect(runtime.pinned()).toEqual([A, B]);

    await daemon.want(spec('rendered-1', 'Disrupt'));
    await daemon.until('no set', ({ status }) => status?.pinnedImageSets === undefined);
    expect(runtime.pinned()).toEqual([]);
  });
});
