/** A daemon and a directory node that somebody else reboots: what is next boot, verified, and rolled back. */
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { Leases } from '../../api/kubernetes.ts';
import type { MachineConfigNode, MachineConfigNodeSpec } from '../../api/machine-config-node.ts';
import { DEFAULT_LEASE_NAMESPACE, imageLabels } from '../../api/names.ts';
import type { DigestedPullspec } from '../../api/references.ts';
import type { LayerItem } from '../../image/layer/entry.ts';
import { CHRONY, degraded, isAt } from '../../test/fixtures/node-configs.ts';
import { deadline, patience } from '../../test/fixtures/patience.ts';
import { type DaemonUnderTest, HOLDER, NODE, startDaemon } from '../../test/fixtures/running-daemon.ts';
import { createTestNode, layerFile, noDirectoryNodes, type TestNode } from '../../test/fixtures/test-node.ts';
import { hasWatchdog } from '../host/boot-watchdog/install.ts';
import { watchdogPaths } from '../host/boot-watchdog/watchdog-files.ts';
import { removeArmedBoot } from './armed-boot.ts';

const CHECK = '/usr/lib/greenboot/check/required.d/10-never.sh';

/** @returns an image as the builder makes it. */
function build(node: TestNode, config: string, ...layer: readonly LayerItem[]): DigestedPullspec {
  return node.addImage(layer, { [imageLabels.renderedConfig]: config, [imageLabels.baseImage]: node.stock });
}

const wanted = (config: string, image: DigestedPullspec): Partial<MachineConfigNodeSpec> => ({
  configVersion: { desired: config },
  configImage: { desiredImage: image },
  imageSigningKeys: 'Disabled',
});

const permitted = (config: string, image: DigestedPullspec): Partial<MachineConfigNodeSpec> => ({
  ...wanted(config, image),
  nextBoot: { config, image },
});

const isArmedFor =
  (image: DigestedPullspec) =>
  ({ status }: MachineConfigNode): boolean =>
    status?.plan?.nextBoot === true && status.plan.image === image;

/** The only check that any image of these tests has never passes. */
const runCheck: TestNode['runCheck'] = async () => ({ passed: false, why: 'ended with exit status 1' });

/** A node that runs an image, and its daemon. */
async function layeredNode() {
  const node = await createTestNode();
  const daemon = await startDaemon(node, { ports: { ...node, runCheck } });
  const first = build(node, 'rendered-1', layerFile(CHRONY, 'one\n'));
  const grant = { level: 'Disrupt', config: 'rendered-1', image: first, leaseHolder: HOLDER } as const;
  await daemon.want({ ...wanted('rendered-1', first), grant });
  const running = await daemon.until('the first image', isAt('rendered-1'));
  return {
    node,
    daemon,
    first,
    bootID: running.status?.bootID,
    nextBoot: async () => (await node.backend.status(deadline(10_000))).staged,
    booted: async () => (await node.backend.status(deadline(10_000))).booted,
    [Symbol.asyncDispose]: async () => {
      await daemon[Symbol.asyncDispose]();
      await node[Symbol.asyncDispose]();
    },
  };
}

async function letLeaseGo({ client }: DaemonUnderTest): Promise<void> {
  const body = { spec: { holderIdentity: '' } };
  await client.patch(Leases, `node-${NODE}`, { type: 'merge', body }, { namespace: DEFAULT_LEASE_NAMESPACE });
}

/** Has the daemon look at its node again. */
async function lookAgain(daemon: DaemonUnderTest, spec: Partial<MachineConfigNodeSpec>): Promise<void> {
  await daemon.want({ ...spec, pool: { name: 'other' } });
}

describe.skipIf(noDirectoryNodes !== undefined)(
  'a node that applies its target at its next reboot',
  { timeout: patience(120_000) },
  () => {
    test('is not rebooted, and verifies the target as an update once somebody else reboots it', async () => {
      await using world = await layeredNode();
      const { node, daemon, bootID } = world;
      const next = build(node, 'rendered-2', layerFile(CHRONY, 'two\n'));
      await daemon.want(permitted('rendered-2', next));
      const { status } = await daemon.until('the target as the next boot', isArmedFor(next));
      const conditions = new Map(status?.conditions?.map((each) => [each.type, each]));
      expect(status).toMatchObject({ bootID, configVersion: { current: 'rendered-1' } });
      expect(conditions.get('UpdatePrepared')).toMatchObject({ status: 'True', reason: 'AtNextReboot' });
      expect(conditions.get('Reconciling')).toMatchObject({
        status: 'True',
        message: "Staged; applies at the node's next reboot",
      });
      const staged = await world.nextBoot();
      expect(staged?.image).toBe(next);
      expect(await hasWatchdog(staged?.root ?? '')).toBe(true);
      expect(await readFile(path.join(node.host.root, CHRONY), 'utf8')).toBe('one\n');

      // A daemon that starts again leaves it as it is.
      await daemon.restart();
      await daemon.until('the target as the next boot still', isArmedFor(next));
      expect((await world.nextBoot())?.id).toBe(staged?.id);

      // So does one whose node somebody else holds, and it still reports what boots next.
      await daemon.want({ ...permitted('rendered-2', next), heldBy: 'its lease is held by ops' });
      const held = await daemon.until(
        'a look at the held node',
        ({ metadata, status: seen }) => seen?.observedGeneration === metadata.generation,
      );
      expect(isArmedFor(next)(held)).toBe(true);

      await node.host.reboot('maintenance', deadline(10_000));
      const updated = await daemon.until('the target', isAt('rendered-2'));
      expect(updated.status?.lastUpdate).toMatchObject({
        image: next,
        result: 'Succeeded',
        bootIDBefore: bootID,
        actions: [{ type: 'Reboot' }],
      });
      expect(updated.status?.lastUpdate?.withoutGrant).toBeUndefined();
      expect(await readFile(path.join(node.host.root, CHRONY), 'utf8')).toBe('two\n');
      expect(await hasWatchdog(node.host.root)).toBe(false);
    });

    test('boots the target with the /etc that it has by then', async () => {
      await using world = await layeredNode();
      const { node, daemon } = world;
      const next = build(node, 'rendered-2', layerFile(CHRONY, 'two\n'));
      await daemon.want(permitted('rendered-2', next));
      await daemon.until('the target as the next boot', isArmedFor(next));
      const before = await world.nextBoot();
      const edited = path.join(node.host.root, '/etc/motd');
      await writeFile(edited, 'by hand\n');
      await lookAgain(daemon, permitted('rendered-2', next));
      // The deployment is made again, so for a moment there is none.
      const ofNextBoot = async () => {
        const { image, root = '/nowhere' } = (await world.nextBoot()) ?? {};
        return { image, motd: await readFile(path.join(root, '/etc/motd'), 'utf8') };
      };
      await expect
        .poll(ofNextBoot, { timeout: patience(30_000) })
        .toEqual({ image: before?.image, motd: 'by hand\n' });
      await daemon.until('the target as the next boot again', isArmedFor(next));
      await node.host.reboot('maintenance', deadline(10_000));
      await daemon.until('the target', isAt('rendered-2'));
      expect(await readFile(path.join(node.host.root, '/etc/motd'), 'utf8')).toBe('by hand\n');
    });

    test('rolls back from a target that is not healthy, and is not armed with it again', async () => {
      await using world = await layeredNode();
      const { node, daemon, first } = world;
      const bad = build(node, 'rendered-2', layerFile(CHRONY, 'two\n'), layerFile(CHECK, 'never\n', 0o755));
      await daemon.want(permitted('rendered-2', bad));
      await daemon.until('the target as the next boot', isArmedFor(bad));
      await letLeaseGo(daemon);
      await node.host.reboot('maintenance', deadline(10_000));
      const back = await daemon.until('the rollback', ({ status }) => status?.lastUpdate?.image === bad);
      expect(back.status).toMatchObject({
        configImage: { currentImage: first },
        lastUpdate: { result: 'RolledBack' },
      });
      const failed = await daemon.until('the failure', (object) => degraded(object)?.status === 'True');
      expect(degraded(failed)?.reason).toBe('HealthCheckFailed');
      expect(failed.status?.plan?.nextBoot).toBeUndefined();
      expect((await world.booted()).image).toBe(first);
      expect((await world.nextBoot())?.image).not.toBe(bad);
    });

    test('rolls back from a target that the host has rolled back from', async () => {
      await using world = await layeredNode();
      const { node, daemon, first } = world;
      const next = build(node, 'rendered-2', layerFile(CHRONY, 'two\n'));
      await daemon.want(permitted('rendered-2', next));
      await daemon.until('the target as the next boot', isArmedFor(next));
      const armed = await world.nextBoot();
      // What the watchdog does in a boot that no daemon sees: it leaves its mark, and makes the former deployment the
      // next boot.
      await node.backend.unstage(deadline(10_000));
      const mark = `deployment ${armed?.id}\nbootID other\nreason DaemonNeverStarted\nlimitSeconds 900\n`;
      await writeFile(path.join(node.host.root, watchdogPaths.mark), mark);
      await node.host.reboot('maintenance', deadline(10_000));
      const back = await daemon.until('the rollback', ({ status }) => status?.lastUpdate?.image === next);
      expect(back.status).toMatchObject({
        configImage: { currentImage: first },
        lastUpdate: { result: 'RolledBack', reason: 'DaemonNeverStarted' },
      });
      const failed = await daemon.until('the failure', (object) => degraded(object)?.status === 'True');
      expect(degraded(failed)?.reason).toBe('DaemonNeverStarted');
      expect(await world.nextBoot()).toBeUndefined();
    });

    test('verifies as a boot without a grant what booted before it was armed to the end', async () => {
      await using world = await layeredNode();
      const { node, daemon } = world;
      const next = build(node, 'rendered-2', layerFile(CHRONY, 'two\n'));
      await daemon.want(permitted('rendered-2', next));
      await daemon.until('the target as the next boot', isArmedFor(next));
      // The record is what is written last.
      await removeArmedBoot(node.host.root);
      await node.host.reboot('loss of power', deadline(10_000));
      const updated = await daemon.until('the target', isAt('rendered-2'));
      expect(updated.status?.lastUpdate).toMatchObject({ result: 'Succeeded', withoutGrant: true });
    });

    test('boots what it runs once the permission is withdrawn, and another target with another one', async () => {
      await using world = await layeredNode();
      const { node, daemon, first } = world;
      const next = build(node, 'rendered-2', layerFile(CHRONY, 'two\n'));
      await daemon.want(permitted('rendered-2', next));
      await daemon.until('the target as the next boot', isArmedFor(next));
      await daemon.want({ ...wanted('rendered-2', next) });
      const waiting = await daemon.until(
        'the plan alone',
        ({ status }) => status?.plan?.image === next && status.plan.staged && status.plan.nextBoot !== true,
      );
      expect(waiting.status?.configVersion?.current).toBe('rendered-1');
      expect(await world.nextBoot()).toBeUndefined();
      const before = waiting.status?.bootID;
      await node.host.reboot('maintenance', deadline(10_000));
      const up = await daemon.until('the boot', ({ status }) => status?.bootID !== before);
      expect(up.status).toMatchObject({ configImage: { currentImage: first } });
      expect((await world.booted()).image).toBe(first);

      await daemon.want(permitted('rendered-2', next));
      await daemon.until('the target as the next boot', isArmedFor(next));
      const other = build(node, 'rendered-3', layerFile(CHRONY, 'three\n'));
      await daemon.want({ ...wanted('rendered-3', other) });
      await daemon.until('the other plan', ({ status }) => status?.plan?.image === other);
      expect(await world.nextBoot()).toBeUndefined();
      await daemon.want(permitted('rendered-3', other));
      await daemon.until('the other target as the next boot', isArmedFor(other));
      expect((await world.nextBoot())?.image).toBe(other);
    });

    test('reboots with a grant all the same', async () => {
      await using world = await layeredNode();
      const { node, daemon, bootID } = world;
      const next = build(node, 'rendered-2', layerFile(CHRONY, 'two\n'));
      await daemon.want(permitted('rendered-2', next));
      await daemon.until('the target as the next boot', isArmedFor(next));
      const grant = { level: 'Disrupt', config: 'rendered-2', image: next, leaseHolder: HOLDER } as const;
      await daemon.want({ ...wanted('rendered-2', next), grant });
      const updated = await daemon.until('the target', isAt('rendered-2'));
      expect(updated.status?.bootID).not.toBe(bootID);
      expect(updated.status?.lastUpdate).toMatchObject({ result: 'Succeeded' });
    });
  },
);
