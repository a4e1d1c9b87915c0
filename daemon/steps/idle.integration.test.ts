/** Drift on a disk that is watched: what an admin changes between updates, told and kept. */
import { chmod, readFile, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import type { MachineConfig } from '../../api/machine-config.ts';
import {
  type MachineConfigNode,
  type MachineConfigNodeSpec,
  MachineConfigNodes,
  PREPARE_REFUSED,
} from '../../api/machine-config-node.ts';
import { annotations, imageLabels, nodePaths } from '../../api/names.ts';
import type { DigestedPullspec } from '../../api/references.ts';
import { layerContent } from '../../builder/layer/layer-content.ts';
import { encodeTransitionLabel } from '../../disruption/transitions.ts';
import { parseNodeConfig } from '../../machineconfig/parse-node-config.ts';
import { CHRONY, isAt, policies, render, standardSpec } from '../../test/fixtures/node-configs.ts';
import { deadline, patience } from '../../test/fixtures/patience.ts';
import { type DaemonUnderTest, HOLDER, NODE, startDaemon } from '../../test/fixtures/running-daemon.ts';
import { createTestNode, noDirectoryNodes, type TestNode } from '../../test/fixtures/test-node.ts';
import { directoryNodeLayout } from '../../workshop/sandbox/node/directory-host.ts';
import { osCommandRunner } from '../os/os-command.ts';

const placeOf = (node: TestNode, name: string) => path.join(node.host.root, name);

const hasDrifted = (what: string) => (object: MachineConfigNode) =>
  (object.status?.conditions ?? []).some(
    ({ type, status, reason, message }) =>
      type === 'NodeDegraded' && status === 'True' && reason === 'ConfigDrift' && message.includes(what),
  );

/** Requests a repair, as `shale repair` does. */
async function requestRepair({ client }: DaemonUnderTest, id: string): Promise<void> {
  const body = { metadata: { annotations: { [annotations.repair]: JSON.stringify({ id, by: 'ann' }) } } };
  await client.patch(MachineConfigNodes, NODE, { type: 'merge', body }, { signal: deadline(30_000) });
}

const hasRepaired = (id: string) => (object: MachineConfigNode) =>
  object.status?.lastRepair?.id === id && object.status.lastRepair.result === 'Succeeded';

/** @returns the digest of the policies in force. */
async function inStandardMode(daemon: DaemonUnderTest): Promise<string> {
  const policy = await policies(daemon);
  await render(daemon, 'rendered-1', 'standard\n');
  await daemon.want(standardSpec(policy)('rendered-1', 'Disrupt'));
  await daemon.until('the first config', isAt('rendered-1'));
  return policy;
}

describe.skipIf(noDirectoryNodes !== undefined)('config drift', { timeout: patience(60_000) }, () => {
  test('is told as it happens and ends when the file is put back', async () => {
    await using node = await createTestNode();
    await using daemon = await startDaemon(node);
    await inStandardMode(daemon);
    // As long as the config's: what differs in size is not read.
    await writeFile(placeOf(node, CHRONY), 'by hand!\n');
    const drifted = await daemon.until('the changed content', hasDrifted(`${CHRONY}: has sha256`));
    expect(JSON.stringify(drifted.status)).not.toContain('by hand');
    await rm(placeOf(node, CHRONY));
    await daemon.until('the file that is gone', hasDrifted(`${CHRONY}: is not there`));
    await writeFile(placeOf(node, CHRONY), 'standard\n', { mode: 0o600 });
    await daemon.until('the mode', hasDrifted(`${CHRONY}: has mode 0600, but should have 0644`));
    await chmod(placeOf(node, CHRONY), 0o644);
    await daemon.until('the node as it was', isAt('rendered-1'));
  });

  test('is found at start, and stays until somebody gives leave to overwrite', async () => {
    await using node = await createTestNode();
    {
      await using daemon = await startDaemon(node);
      await inStandardMode(daemon);
    }
    await writeFile(placeOf(node, CHRONY), 'while it was away\n');
    await using daemon = await startDaemon(node);
    await daemon.want(standardSpec(await policies(daemon))('rendered-1'));
    await daemon.until('the drift', hasDrifted(CHRONY));
    expect(await readFile(placeOf(node, CHRONY), 'utf8')).toBe('while it was away\n');
    await writeFile(placeOf(node, nodePaths.forceFile), '');
    await daemon.until('the node as it was', isAt('rendered-1'));
    expect(await readFile(placeOf(node, CHRONY), 'utf8')).toBe('standard\n');
    await expect(stat(placeOf(node, nodePaths.forceFile))).rejects.toMatchObject({ code: 'ENOENT' });
  });

  test('ends where an admin requests a repair, and a later change is not undone by that request', async () => {
    await using node = await createTestNode();
    await using daemon = await startDaemon(node);
    await inStandardMode(daemon);
    await writeFile(placeOf(node, CHRONY), 'by hand\n');
    await daemon.until('the drift', hasDrifted(CHRONY));
    await requestRepair(daemon, 'first');
    await daemon.until('the repair', hasRepaired('first'));
    await daemon.until('the node as it was', isAt('rendered-1'));
    expect(await readFile(placeOf(node, CHRONY), 'utf8')).toBe('standard\n');
    await writeFile(placeOf(node, CHRONY), 'by hand again\n');
    await daemon.restart();
    await daemon.until('the drift after it', hasDrifted(CHRONY));
    expect(await readFile(placeOf(node, CHRONY), 'utf8')).toBe('by hand again\n');
  });

  test('keeps a new config from overwriting what was changed by hand without leave', async () => {
    await using node = await createTestNode();
    await using daemon = await startDaemon(node);
    const policy = await inStandardMode(daemon);
    await writeFile(placeOf(node, CHRONY), 'by hand\n');
    await daemon.until('the drift', hasDrifted(CHRONY));
    await render(daemon, 'rendered-2', 'new\n');
    await daemon.want(standardSpec(policy)('rendered-2', 'Live'));
    const refused = await daemon.until('the refusal', ({ status }) =>
      (status?.conditions ?? []).some(
        ({ reason, message }) => reason === PREPARE_REFUSED && message.includes('Changed on the node'),
      ),
    );
    // Without a plan nobody cordons or drains the node for it.
    expect(refused.status?.plan).toBeUndefined();
    expect(await readFile(placeOf(node, CHRONY), 'utf8')).toBe('by hand\n');
    await writeFile(placeOf(node, nodePaths.forceFile), '');
    await daemon.until('the new config', isAt('rendered-2'));
    expect(await readFile(placeOf(node, CHRONY), 'utf8')).toBe('new\n');
  });
});

/**
 * An image as the builder makes it; unless given, with a file in /etc and one that systemd-tmpfiles writes.
 *
 * @param liveFrom configs from which a node takes it without an action.
 */
function build(
  node: TestNode,
  name: string,
  content: string,
  files: readonly string[] = [CHRONY, STATE],
  kernelArguments: string[] = [],
  liveFrom: readonly string[] = [],
): DigestedPullspec {
  const file = (at: string) => ({
    path: at,
    mode: 0o644,
    contents: { source: `data:,${encodeURIComponent(content)}` },
  });
  const rendered: MachineConfig = {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name },
    spec: {
      config: { ignition: { version: '3.4.0' }, storage: { files: files.map(file) } },
      kernelArguments,
    },
  };
  const parsed = parseNodeConfig(rendered);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  const layer = layerContent(parsed.config, rendered);
  if (!layer.ok) throw new Error(JSON.stringify(layer.refusals));
  return node.addImage(layer.entries, {
    [imageLabels.renderedConfig]: name,
    [imageLabels.baseImage]: node.stock,
    [imageLabels.disruption]: encodeTransitionLabel({
      version: 1,
      policyDigest: POLICY,
      transitions: liveFrom.map((config) => ({ config, base: node.stock, actions: [], causes: [] })),
    }),
  });
}

const POLICY = `sha256:${'a'.repeat(64)}`;

const STATE = '/var/lib/app/seed.conf';
const TOOL = '/usr/local/bin/tool';

const layered = (config: string, image: DigestedPullspec): Partial<MachineConfigNodeSpec> => ({
  configVersion: { desired: config },
  configImage: { desiredImage: image },
  imageSigningKeys: 'Disabled',
  policyDigest: POLICY,
  grant: { level: 'Disrupt', config, image, leaseHolder: HOLDER },
});

describe.skipIf(noDirectoryNodes !== undefined)(
  'config drift in layered mode',
  { timeout: patience(120_000) },
  () => {
    test('is told as it happens, and never carried into another image', async () => {
      await using node = await createTestNode();
      await using daemon = await startDaemon(node);
      await daemon.want(layered('rendered-1', build(node, 'rendered-1', 'one\n')));
      await daemon.until('the first image', isAt('rendered-1'));
      await writeFile(placeOf(node, '/etc/admin.conf'), 'mine\n');

      await writeFile(placeOf(node, STATE), 'two\n');
      await daemon.until('the state file', hasDrifted(`${STATE}: has sha256`));
      await writeFile(placeOf(node, STATE), 'one\n');
      await daemon.until('the node as it was', isAt('rendered-1'));
      await writeFile(placeOf(node, CHRONY), 'two\n');
      await daemon.until('the file in /etc', hasDrifted(`${CHRONY}: has sha256`));

      const before = await node.host.bootID();
      await daemon.want(layered('rendered-2', build(node, 'rendered-2', 'three\n')));
      await daemon.until('the refusal', ({ status }) =>
        (status?.conditions ?? []).some(
          ({ reason, message }) => reason === PREPARE_REFUSED && message.includes('Changed on the node'),
        ),
      );
      expect(await node.host.bootID()).toBe(before);
      await writeFile(placeOf(node, nodePaths.forceFile), '');
      await daemon.until('the second image', isAt('rendered-2'));
      expect(await readFile(placeOf(node, CHRONY), 'utf8')).toBe('three\n');
      expect(await readFile(placeOf(node, STATE), 'utf8')).toBe('three\n');
      expect(await readFile(placeOf(node, '/etc/admin.conf'), 'utf8')).toBe('mine\n');
    });

    test('ends where an admin requests a repair, also of a node that refuses an update for it', async () => {
      await using node = await createTestNode();
      await using daemon = await startDaemon(node);
      await daemon.want(layered('rendered-1', build(node, 'rendered-1', 'one\n')));
      await daemon.until('the first image', isAt('rendered-1'));
      await writeFile(placeOf(node, CHRONY), 'two\n');
      await daemon.until('the file in /etc', hasDrifted(`${CHRONY}: has sha256`));
      await requestRepair(daemon, 'first');
      await daemon.until('the repair', hasRepaired('first'));
      await daemon.until('the node as it was', isAt('rendered-1'));
      expect(await readFile(placeOf(node, CHRONY), 'utf8')).toBe('one\n');

      await writeFile(placeOf(node, STATE), 'two\n');
      await daemon.until('the state file', hasDrifted(`${STATE}: has sha256`));
      await daemon.want(layered('rendered-2', build(node, 'rendered-2', 'three\n')));
      await daemon.until('the refusal', ({ status }) =>
        (status?.conditions ?? []).some(({ reason }) => reason === PREPARE_REFUSED),
      );
      await requestRepair(daemon, 'second');
      await daemon.until('the second image', isAt('rendered-2'));
      expect(await readFile(placeOf(node, STATE), 'utf8')).toBe('three\n');
    });

    test('what a config has no more outside of /etc is gone after a reboot, and after the way out', async () => {
      await using node = await createTestNode();
      await using daemon = await startDaemon(node);
      const isThere = (name: string) =>
        stat(placeOf(node, name)).then(
          () => true,
          () => false,
        );
      const all = [CHRONY, STATE, TOOL];
      await daemon.want(layered('rendered-1', build(node, 'rendered-1', 'one\n', all)));
      await daemon.until('the first image', isAt('rendered-1'));
      expect(await Promise.all(all.map(isThere))).toEqual([true, true, true]);
      await writeFile(placeOf(node, '/var/lib/app/admin.conf'), 'mine\n');

      await daemon.want(layered('rendered-2', build(node, 'rendered-2', 'two\n', [CHRONY, TOOL])));
      await daemon.until('the second image', isAt('rendered-2'));
      expect(await Promise.all([STATE, TOOL, '/var/lib/app/admin.conf'].map(isThere))).toEqual([
        false,
        true,
        true,
      ]);

      const standard = standardSpec(await policies(daemon));
      await render(daemon, 'rendered-3', 'standard\n');
      await daemon.want(standard('rendered-3', 'Disrupt'));
      await daemon.until('standard mode', isAt('rendered-3'));
      expect(await Promise.all([TOOL, '/var/lib/app/admin.conf'].map(isThere))).toEqual([false, true]);
      expect(await readFile(placeOf(node, CHRONY), 'utf8')).toBe('standard\n');
    });
  },
);

const COMMAND_MS = 60_000;

/** A daemon on a node on which an admin changes something between two boots, while no daemon runs. */
async function startBetweenBoots(node: TestNode) {
  let change = async () => {};
  const daemon = await startDaemon({ ...node, boot: () => change().then(() => node.boot()) });
  const ostree = async (command: readonly string[], arguments_: readonly string[]) => {
    const sysroot = `--sysroot=${directoryNodeLayout(node.dir).sysroot}`;
    const line: [string, ...string[]] = ['ostree', 'admin', ...command, sysroot, ...arguments_];
    await osCommandRunner()(line, { timeoutMs: COMMAND_MS, signal: deadline(COMMAND_MS) });
  };
  return {
    daemon,
    /** The kernel arguments that the node has booted with. */
    booted: async () => (await node.backend.status(deadline(COMMAND_MS))).booted.kernelArguments,
    bootAfter: async (changed: (admin: typeof ostree) => Promise<unknown>) => {
      change = async () => void (await changed(ostree));
      await daemon.boot();
      change = async () => {};
    },
  };
}

describe.skipIf(noDirectoryNodes !== undefined)(
  'drift of kernel arguments',
  { timeout: patience(120_000) },
  () => {
    test('in standard mode is found after a boot, and ended by an admin or the next reboot for an update', async () => {
      await using node = await createTestNode();
      const { daemon, booted, bootAfter } = await startBetweenBoots(node);
      await using _daemon = daemon;
      const policy = await policies(daemon);
      await render(daemon, 'rendered-1', 'standard\n', ['audit=1']);
      await daemon.want(standardSpec(policy)('rendered-1', 'Disrupt'));
      await daemon.until('the first config', isAt('rendered-1'));

      const without = (await booted()).filter((argument) => argument !== 'audit=1');
      await bootAfter((ostree) => ostree(['instutil', 'set-kargs'], [...without, 'admin=1']));
      await daemon.until(
        'the argument that is gone',
        hasDrifted('rendered-1: audit=1 is missing. Run ostree'),
      );
      expect(await booted()).toEqual([...without, 'admin=1']);
      await bootAfter((ostree) => ostree(['kargs', 'edit-in-place'], ['--append-if-missing=audit=1']));
      await daemon.until('the node as it was', isAt('rendered-1'));

      // Files alone change, and the node reboots for them: what boots has the arguments of the config.
      await bootAfter((ostree) => ostree(['instutil', 'set-kargs'], [...without, 'admin=1']));
      await daemon.until('the argument that is gone again', hasDrifted('audit=1 is missing'));
      await render(daemon, 'rendered-2', 'by a reboot\n', ['audit=1']);
      await daemon.want(standardSpec('sha256:other')('rendered-2', 'Disrupt'));
      const updated = await daemon.until('the files of the second config', isAt('rendered-2'));
      expect(updated.status?.lastUpdate).toMatchObject({
        result: 'Succeeded',
        actions: [{ type: 'Reboot' }],
      });
      expect(new Set(await booted())).toEqual(new Set([...without, 'admin=1', 'audit=1']));
    });

    test('that a withdrawn target left in standard mode goes with the next granted reboot', async () => {
      await using node = await createTestNode();
      const { daemon, booted, bootAfter } = await startBetweenBoots(node);
      await using _daemon = daemon;
      const standard = standardSpec(await policies(daemon));
      await render(daemon, 'rendered-1', 'standard\n', ['audit=1']);
      await daemon.want(standard('rendered-1', 'Disrupt'));
      await daemon.until('the first config', isAt('rendered-1'));
      const before = await booted();
      await daemon.want(standard('rendered-1'));

      const extraKernelArguments = { remove: ['audit=1'], add: ['audit=0', 'extra=1'] };
      await bootAfter(() =>
        node.backend.stage(node.stock, { extraKernelArguments, signal: deadline(60_000) }),
      );
      const waiting = await daemon.until(
        'the plan of a rollback',
        ({ status }) => status?.plan?.staged === true,
      );
      expect(waiting.status).toMatchObject({
        lastUpdate: { withoutGrant: true, result: 'Succeeded' },
        plan: {
          config: 'rendered-1',
          actions: [{ type: 'Reboot' }],
          source: 'the node booted with the kernel arguments audit=0 extra=1 instead of those of rendered-1',
        },
      });
      expect(isAt('rendered-1')(waiting)).toBe(false);
      await daemon.want(standard('rendered-1', 'Disrupt'));
      const back = await daemon.until('the first config again', isAt('rendered-1'));
      expect(back.status?.lastUpdate?.withoutGrant).toBeUndefined();
      expect(new Set(await booted())).toEqual(new Set(before));
    });

    test('in layered mode is left by a live update, and ended by the next image that reboots', async () => {
      await using node = await createTestNode();
      const { daemon, booted, bootAfter } = await startBetweenBoots(node);
      await using _daemon = daemon;
      const image = (config: string, ...liveFrom: readonly string[]) =>
        build(node, config, `${config}\n`, [CHRONY], ['audit=1'], liveFrom);
      await daemon.want(layered('rendered-1', image('rendered-1')));
      await daemon.until('the first image', isAt('rendered-1'));

      const without = (await booted()).filter((argument) => argument !== 'audit=1');
      await bootAfter((ostree) => ostree(['instutil', 'set-kargs'], [...without, 'admin=1']));
      await daemon.until(
        'the argument that is gone',
        hasDrifted('rendered-1: audit=1 is missing. Run ostree'),
      );
      const bootID = await node.host.bootID();
      await daemon.want(layered('rendered-2', image('rendered-2', 'rendered-1')));
      const live = await daemon.until('the second image', hasDrifted('rendered-2: audit=1 is missing'));
      expect(live.status).toMatchObject({
        bootID,
        lastUpdate: { config: 'rendered-2', result: 'Succeeded', actions: [] },
      });
      expect(await booted()).toEqual([...without, 'admin=1']);

      await daemon.want(layered('rendered-3', image('rendered-3')));
      await daemon.until('the third image', isAt('rendered-3'));
      expect(new Set(await booted())).toEqual(new Set([...without, 'admin=1', 'audit=1']));
    });
  },
);
