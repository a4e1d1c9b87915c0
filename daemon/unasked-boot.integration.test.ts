/** A boot that nobody granted: what the daemon finds on the disk decides what it reports. */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { Leases } from '../api/kubernetes.ts';
import type { MachineConfigNode, MachineConfigNodeSpec } from '../api/machine-config-node.ts';
import { DEFAULT_LEASE_NAMESPACE, imageLabels } from '../api/names.ts';
import type { DigestedPullspec } from '../api/references.ts';
import type { LayerItem } from '../image/layer/entry.ts';
import { CHRONY, degraded, isAt, policies, render, standardSpec } from '../test/fixtures/node-configs.ts';
import { deadline, patience } from '../test/fixtures/patience.ts';
import { type DaemonUnderTest, HOLDER, NODE, startDaemon } from '../test/fixtures/running-daemon.ts';
import { createTestNode, layerFile, noDirectoryNodes, type TestNode } from '../test/fixtures/test-node.ts';

const KARGS = '/usr/lib/bootc/kargs.d/50-shale.toml';
const CHECK = '/usr/lib/greenboot/check/required.d/10-never.sh';

/** Somebody other than Shale has made an image the next boot, and rebooted. */
async function bootUnasked(node: TestNode, image: DigestedPullspec): Promise<void> {
  await node.backend.stage(image, {
    extraKernelArguments: { remove: [], add: [] },
    signal: deadline(60_000),
  });
  await node.host.reboot('unplanned', deadline(10_000));
}

/** @returns an image as the builder makes it. */
function build(node: TestNode, config: string, ...layer: readonly LayerItem[]): DigestedPullspec {
  return node.addImage(layer, {
    [imageLabels.renderedConfig]: config,
    [imageLabels.baseImage]: node.stock,
  });
}

const wanted = (config: string, image: DigestedPullspec): Partial<MachineConfigNodeSpec> => ({
  configVersion: { desired: config },
  configImage: { desiredImage: image },
  imageSigningKeys: 'Disabled',
});

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

      const image = build(node, 'rendered-1', layerFile(KARGS, 'kargs = ["layered=1"]\n'));
      await daemon.want({ ...wanted('rendered-1', image), policyDigest });
      await daemon.until('the plan', ({ status }) => status?.plan?.image === image);
      const before = await node.host.bootID();
      await bootUnasked(node, image);
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

    test('the target is verified as an update, and rolled back from where it is not healthy', async () => {
      await using node = await createTestNode();
      await using daemon = await startDaemon(node, { ports: { ...node, runCheck } });
      const first = build(node, 'rendered-1', layerFile(CHRONY, 'one\n'));
      const grant = { level: 'Disrupt', config: 'rendered-1', image: first, leaseHolder: HOLDER } as const;
      await daemon.want({ ...wanted('rendered-1', first), grant });
      const granted = await daemon.until('the first image', isAt('rendered-1'));
      expect(granted.status?.lastUpdate?.withoutGrant).toBeUndefined();

      const good = build(node, 'rendered-2', layerFile(CHRONY, 'two\n'));
      await daemon.want(wanted('rendered-2', good));
      await daemon.until('the plan', ({ status }) => status?.plan?.image === good);
      await bootUnasked(node, good);
      const updated = await daemon.until('the second image', isAt('rendered-2'));
      expect(updated.status?.lastUpdate).toMatchObject({
        config: 'rendered-2',
        image: good,
        withoutGrant: true,
        result: 'Succeeded',
        bootIDBefore: granted.status?.bootID,
      });

      const bad = build(node, 'rendered-3', layerFile(CHRONY, 'three\n'), layerFile(CHECK, 'never\n', 0o755));
      await daemon.want(wanted('rendered-3', bad));
      await daemon.until('the next plan', ({ status }) => status?.plan?.image === bad);
      await letLeaseGo(daemon);
      await bootUnasked(node, bad);
      const back = await daemon.until('the rollback', ({ status }) => status?.lastUpdate?.image === bad);
      expect(back.status).toMatchObject({
        configImage: { currentImage: good },
        lastUpdate: { result: 'RolledBack', withoutGrant: true },
      });
      expect(degraded(back)?.reason).toBe('HealthCheckFailed');
      expect((await node.backend.status(deadline(10_000))).booted.image).toBe(good);
      expect(await readFile(path.join(node.host.root, CHRONY), 'utf8')).toBe('two\n');
    });
  },
);

describe.skipIf(noDirectoryNodes !== undefined)(
  'a fresh node that came with an image of its pool',
  { timeout: patience(120_000) },
  () => {
    /** A node whose first boot is the image: nothing of Shale's has run on it. */
    async function freshNode(...layer: readonly LayerItem[]) {
      const node = await createTestNode();
      const image = build(node, 'rendered-1', layerFile(CHRONY, 'one\n'), ...layer);
      await node.backend.stage(image, {
        extraKernelArguments: { remove: [], add: [] },
        signal: deadline(60_000),
      });
      await node.boot();
      return { node, image };
    }

    test('runs its target without a grant or another boot, once it is found healthy', async () => {
      const { node, image } = await freshNode();
      await using _node = node;
      const bootID = await node.host.bootID();
      await using daemon = await startDaemon(node);
      await daemon.want(wanted('rendered-1', image));
      const { status } = await daemon.until('the target', isAt('rendered-1'));
      expect(status).toMatchObject({
        mode: 'Layered',
        bootID,
        configImage: { currentImage: image },
        lastUpdate: { image, result: 'Succeeded', firstBoot: true, actions: [] },
      });
      expect(status?.lastUpdate).not.toHaveProperty('withoutGrant');
      await daemon.restart();
      await daemon.want({ ...wanted('rendered-1', image), pool: { name: 'other' } });
      expect((await daemon.until('the target still', isAt('rendered-1'))).status?.bootID).toBe(bootID);
    });

    test('is degraded, and rolls back to nothing, where it is not healthy', async () => {
      const { node, image } = await freshNode(layerFile(CHECK, 'never\n', 0o755));
      await using _node = node;
      const bootID = await node.host.bootID();
      await using daemon = await startDaemon(node, { ports: { ...node, runCheck } });
      await daemon.want(wanted('rendered-1', image));
      const failed = await daemon.until(
        'the failure',
        ({ status }) => status?.lastUpdate?.result === 'Failed',
      );
      expect(degraded(failed)?.reason).toBe('HealthCheckFailed');
      expect(failed.status).toMatchObject({ bootID, configImage: { currentImage: image } });
      expect((await node.backend.status(deadline(10_000))).booted.image).toBe(image);
    });

    test('is not updated before the signature of its image is found', async () => {
      const { node, image } = await freshNode();
      await using _node = node;
      await using daemon = await startDaemon(node);
      await daemon.want({ ...wanted('rendered-1', image), imageSigningKeys: 'sha256:unknown' });
      const says =
        /Waiting for a signature of the image that the node came with: .*the operator named sha256:unknown/;
      const waiting = await daemon.until(
        'what it waits for',
        ({ status }) => status?.conditions?.some(({ message }) => says.test(message)) === true,
      );
      expect(isAt('rendered-1')(waiting)).toBe(false);
      expect(degraded(waiting)?.status).not.toBe('True');
      await daemon.want(wanted('rendered-1', image));
      await daemon.until('the target', isAt('rendered-1'));
    });

    test('goes to the target of its pool where that is another one', async () => {
      const { node, image } = await freshNode();
      await using _node = node;
      const next = build(node, 'rendered-2', layerFile(CHRONY, 'two\n'));
      await using daemon = await startDaemon(node);
      await daemon.want(wanted('rendered-2', next));
      const { status } = await daemon.until('the plan', (object) => object.status?.plan?.image === next);
      expect(status).toMatchObject({
        configImage: { currentImage: image },
        plan: { actions: [{ type: 'Reboot' }] },
      });
    });
  },
);

describe.skipIf(noDirectoryNodes !== undefined)(
  'a node without a grant',
  { timeout: patience(120_000) },
  () => {
    test('boots what it runs, and with the grant what it has fetched', async () => {
      await using node = await createTestNode();
      await using daemon = await startDaemon(node);
      const policyDigest = await policies(daemon);
      const standard = standardSpec(policyDigest);
      await render(daemon, 'rendered-1', 'config\n');
      await daemon.want(standard('rendered-1', 'Disrupt'));
      await daemon.until('standard mode', isAt('rendered-1'));
      const { kernelArguments } = (await node.backend.status(deadline(10_000))).booted;
      const losePower = async () => {
        const before = await node.host.bootID();
        await node.host.reboot('loss of power', deadline(10_000));
        const up = await daemon.until(
          'the boot and a plan again',
          ({ status }) => status?.bootID !== before && status?.plan !== undefined,
        );
        expect(up.status).toMatchObject({ mode: 'Standard', configVersion: { current: 'rendered-1' } });
        const { booted } = await node.backend.status(deadline(10_000));
        expect(booted).toMatchObject({ image: node.stock, kernelArguments });
      };

      // Other kernel arguments of the same image are another deployment, too.
      await render(daemon, 'rendered-2', 'config\n', ['extra=1']);
      await daemon.want(standard('rendered-2'));
      await daemon.until('the plan', ({ status }) => status?.plan?.config === 'rendered-2');
      await losePower();

      const image = build(node, 'rendered-1', layerFile(CHRONY, 'config\n'));
      await daemon.want({ ...wanted('rendered-1', image), policyDigest });
      await daemon.until('the plan of the image', ({ status }) => status?.plan?.image === image);
      await losePower();
      const grant = { level: 'Disrupt', config: 'rendered-1', image, leaseHolder: HOLDER } as const;
      await daemon.want({ ...wanted('rendered-1', image), policyDigest, grant });
      const updated = await daemon.until('the image', ({ status }) => status?.lastUpdate?.image === image);
      expect(updated.status).toMatchObject({ mode: 'Layered', lastUpdate: { result: 'Succeeded' } });
      expect(updated.status?.lastUpdate?.withoutGrant).toBeUndefined();
    });
  },
);

/** The only check that any image of these tests has never passes. */
const runCheck: TestNode['runCheck'] = async () => ({ passed: false, why: 'ended with exit status 1' });

async function letLeaseGo({ client }: DaemonUnderTest): Promise<void> {
  const body = { spec: { holderIdentity: '' } };
  await client.patch(Leases, `node-${NODE}`, { type: 'merge', body }, { namespace: DEFAULT_LEASE_NAMESPACE });
}
