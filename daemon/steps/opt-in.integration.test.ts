/** The way into layering and back on a directory node: what it boots, and what its root has then. */
import { readFile, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import type { Grant, MachineConfigNode, MachineConfigNodeSpec } from '../../api/machine-config-node.ts';
import { imageLabels, nodePaths } from '../../api/names.ts';
import { present } from '../../api/present.ts';
import type { DigestedPullspec } from '../../api/references.ts';
import { layerContent } from '../../builder/layer/layer-content.ts';
import type { LayerItem } from '../../image/layer/entry.ts';
import { parseNodeConfig } from '../../machineconfig/parse-node-config.ts';
import { CHRONY, degraded, isAt, policies, standardSpec } from '../../test/fixtures/node-configs.ts';
import { deadline, patience } from '../../test/fixtures/patience.ts';
import { type DaemonUnderTest, HOLDER, startDaemon } from '../../test/fixtures/running-daemon.ts';
import { createTestNode, layerFile, noDirectoryNodes, type TestNode } from '../../test/fixtures/test-node.ts';
import { directoryNodeLayout } from '../../workshop/sandbox/node/directory-host.ts';
import { readServiceRecords } from '../../workshop/sandbox/node/service-recorder.ts';
import { verifyContent } from '../content/drift/verify-content.ts';
import { managedContent } from '../content/managed-content.ts';

const STATE = '/var/lib/app/seed.conf';
const KEYS = '/home/core/.ssh/authorized_keys.d/ignition';
const UNIT = '[Service]\nExecStart=/usr/bin/true\n[Install]\nWantedBy=multi-user.target\n';

/** Of everything that both modes can bring to a node. */
function rendered(name: string, content = 'one\n', unit = UNIT): MachineConfig {
  const file = (at: string) => ({
    path: at,
    mode: 0o644,
    overwrite: true,
    contents: { source: `data:,${encodeURIComponent(content)}` },
  });
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name },
    spec: {
      config: {
        ignition: { version: '3.4.0' },
        storage: { files: [CHRONY, STATE].map(file) },
        systemd: { units: [{ name: 'app.service', enabled: true, contents: unit }] },
        passwd: { users: [{ name: 'core', sshAuthorizedKeys: ['ssh-ed25519 AAAA admin'] }] },
      },
      kernelArguments: ['quiet=1'],
    },
  };
}

/** @returns an image as the builder makes it. @param more what is in it beside the config. */
function build(
  node: TestNode,
  config: MachineConfig,
  { more = [], base = node.stock }: { readonly more?: readonly LayerItem[]; readonly base?: string } = {},
): DigestedPullspec {
  const parsed = parseNodeConfig(config);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  const layer = layerContent(parsed.config, config);
  if (!layer.ok) throw new Error(JSON.stringify(layer.refusals));
  return node.addImage([...layer.entries, ...more], {
    [imageLabels.renderedConfig]: config.metadata.name,
    [imageLabels.baseImage]: base,
  });
}

const layered = (
  config: string,
  image: DigestedPullspec,
  level?: Grant['level'],
): Partial<MachineConfigNodeSpec> => ({
  configVersion: { desired: config },
  configImage: { desiredImage: image },
  imageSigningKeys: 'Disabled',
  ...present({ grant: level && { level, config, image, leaseHolder: HOLDER } }),
});
const placeOf = (node: TestNode, name: string) => path.join(node.host.root, name);
const status = (node: TestNode) => node.backend.status(deadline(10_000));
const isLayered = (object: MachineConfigNode) =>
  object.status?.mode === 'Layered' && isAt('rendered-1')(object);
const isStaged = (image: string) => (object: MachineConfigNode) =>
  object.status?.plan?.staged === true && object.status.plan.image === image;

async function inStandardMode(daemon: DaemonUnderTest, config = rendered('rendered-1')) {
  const standard = standardSpec(await policies(daemon));
  await daemon.client.create(MachineConfigs, config);
  await daemon.want(standard(config.metadata.name, 'Disrupt'));
  await daemon.until('standard mode', isAt(config.metadata.name));
  return standard;
}

/** Where the node's disk is not as the image that it runs has it. */
async function differences(node: TestNode, config: string, image: DigestedPullspec) {
  const content = await managedContent(node.host.root, { version: 1, mode: 'Layered', config, image });
  expect(content?.config.name).toBe(config);
  return verifyContent({ root: node.host.root }, content, deadline(10_000));
}

/** The config of these nodes has keys, which its image has elsewhere. */
const reloadSshd = { type: 'Reload', service: 'sshd.service' };

describe.skipIf(noDirectoryNodes !== undefined)(
  'a node in standard mode that gets the image of its config on its base',
  { timeout: patience(120_000) },
  () => {
    test('is layered without a reboot, boots the image next, and goes back to the stock image', async () => {
      await using node = await createTestNode();
      await using daemon = await startDaemon(node);
      const standard = await inStandardMode(daemon);
      await stat(placeOf(node, KEYS));
      await writeFile(placeOf(node, '/etc/admin.conf'), 'mine\n');
      const before = await node.host.bootID();
      const image = build(node, rendered('rendered-1'));
      await daemon.want(layered('rendered-1', image));
      const staged = await daemon.until('the plan', isStaged(image));
      expect(staged.status?.plan).toMatchObject({
        actions: [reloadSshd],
        source: 'the node has the content of the image already',
      });
      await daemon.want(layered('rendered-1', image, 'Live'));
      const object = await daemon.until('layered mode', isLayered);
      expect(object.status).toMatchObject({
        bootID: before,
        baseImage: node.stock,
        configImage: { currentImage: image },
        lastUpdate: { result: 'Succeeded', actions: [reloadSshd], bootIDBefore: before, bootIDAfter: before },
      });
      expect(await node.host.bootID()).toBe(before);
      expect(await differences(node, 'rendered-1', image)).toEqual([]);
      const { booted, staged: next } = await status(node);
      expect([booted.image, next?.image]).toEqual([node.stock, image]);
      expect(next?.kernelArguments).toEqual(booted.kernelArguments);
      // The image has its keys elsewhere, where sshd has to be told to look.
      await expect(stat(placeOf(node, KEYS))).rejects.toThrow('ENOENT');
      const services = await readServiceRecords(directoryNodeLayout(node.dir));
      expect(services.filter(({ action }) => action === 'reload')).toMatchObject([
        { unit: 'sshd.service', bootID: before },
      ]);

      // Power is lost: what boots is the image, with the same content, and that is what the node was told to run.
      await daemon.boot();
      const after = await node.host.bootID();
      await daemon.until('the image', (now) => isLayered(now) && now.status?.bootID === after);
      expect((await status(node)).booted.image).toBe(image);
      expect(await differences(node, 'rendered-1', image)).toEqual([]);
      expect(await readFile(placeOf(node, '/etc/admin.conf'), 'utf8')).toBe('mine\n');

      await daemon.want(standard('rendered-1', 'Disrupt'));
      await daemon.until('standard mode again', ({ status: now }) => now?.mode === 'Standard');
      expect((await status(node)).booted.image).toBe(node.stock);
    });

    test('keeps the stock image to go back to before it has booted the image', async () => {
      await using node = await createTestNode();
      await using daemon = await startDaemon(node);
      const standard = await inStandardMode(daemon);
      const image = build(node, rendered('rendered-1'));
      await daemon.want(layered('rendered-1', image, 'Live'));
      await daemon.until('layered mode', isLayered);
      const before = await node.host.bootID();
      await daemon.want(standard('rendered-1', 'Disrupt'));
      const back = await daemon.until(
        'standard mode',
        (now) => now.status?.mode === 'Standard' && isAt('rendered-1')(now),
      );
      expect(back.status?.bootID).not.toBe(before);
      expect((await status(node)).booted.image).toBe(node.stock);
      await stat(placeOf(node, KEYS));
      for (const gone of [nodePaths.sshdConfig, nodePaths.imageConfig, nodePaths.authorizedKeysDirectory])
        await expect(stat(placeOf(node, gone))).rejects.toThrow('ENOENT');
    });

    test.each<[string, (node: TestNode) => DigestedPullspec, string]>([
      [
        'the image has another base',
        (node) => build(node, rendered('rendered-1'), { base: node.stock.replace(/.{64}$/, '0'.repeat(64)) }),
        'its image is based on',
      ],
      [
        'more than the config is in the image',
        (node) =>
          build(node, rendered('rendered-1'), { more: [layerFile('/usr/bin/tool', 'tool\n', 0o755)] }),
        '/usr/bin/tool is not the same in the image',
      ],
      [
        'the image has other content under the same name',
        (node) => build(node, rendered('rendered-1'), { more: [layerFile('/etc/other.conf', 'other\n')] }),
        '/etc/other.conf is not the same in the image',
      ],
    ])('reboots where %s', async (_name, imageFor, why) => {
      await using node = await createTestNode();
      await using daemon = await startDaemon(node);
      await inStandardMode(daemon);
      const image = imageFor(node);
      await daemon.want(layered('rendered-1', image, 'Live'));
      const { status: now } = await daemon.until('the plan', isStaged(image));
      expect(now?.plan).toMatchObject({
        actions: [{ type: 'Reboot' }],
        source: expect.stringContaining(why),
      });
    });

    test('reboots where a file was changed by hand, and only by leave', async () => {
      await using node = await createTestNode();
      await using daemon = await startDaemon(node);
      await inStandardMode(daemon);
      await writeFile(placeOf(node, CHRONY), 'two\n');
      const image = build(node, rendered('rendered-1'));
      await daemon.want(layered('rendered-1', image, 'Disrupt'));
      await daemon.until('the refusal', ({ status: now }) =>
        (now?.conditions ?? []).some(({ message }) => message.includes('Changed on the node')),
      );
      const before = await node.host.bootID();
      await writeFile(placeOf(node, nodePaths.forceFile), '');
      const object = await daemon.until('layered mode', isLayered);
      expect(object.status?.bootID).not.toBe(before);
      expect(object.status?.lastUpdate).toMatchObject({ actions: [{ type: 'Reboot' }] });
      expect(await readFile(placeOf(node, CHRONY), 'utf8')).toBe('one\n');
    });

    test('reboots into standard mode without content of an image that could not be applied', async () => {
      await using node = await createTestNode();
      await using daemon = await startDaemon(node);
      const standard = await inStandardMode(daemon);
      const faults = directoryNodeLayout(node.dir).serviceFaults;
      await writeFile(faults, JSON.stringify({ 'sshd.service': 'fail' }));
      const image = build(node, rendered('rendered-1'));
      await daemon.want(layered('rendered-1', image, 'Live'));
      const failed = await daemon.until(
        'the failure',
        ({ status: now }) => now?.plan?.liveFailure !== undefined,
      );
      expect(failed.status?.plan).toMatchObject({ actions: [{ type: 'Reboot' }] });
      expect(failed.status?.mode).toBe('Standard');
      await stat(placeOf(node, nodePaths.sshdConfig));
      await rm(faults);
      const before = await node.host.bootID();
      await daemon.want(standard('rendered-1', 'Disrupt'));
      const back = await daemon.until(
        'standard mode',
        (now) => isAt('rendered-1')(now) && now.status?.bootID !== before,
      );
      expect(degraded(back)).toBeUndefined();
      await expect(stat(placeOf(node, nodePaths.sshdConfig))).rejects.toThrow('ENOENT');
      expect((await status(node)).booted.image).toBe(node.stock);
    });
  },
);
