/** A whole daemon over each tool's stand-in: the order of its commands, over boots and losses of power. */
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import type { DisruptionAction } from '../../api/disruption-action.ts';
import type { Grant, MachineConfigNode, MachineConfigNodeSpec } from '../../api/machine-config-node.ts';
import { imageLabels, nodePaths } from '../../api/names.ts';
import { present } from '../../api/present.ts';
import type { DigestedPullspec } from '../../api/references.ts';
import type { ImageTool } from '../../daemon/os/image-tool/image-tool.ts';
import { encodeTransitionLabel } from '../../disruption/transitions.ts';
import { CHRONY, isAt, policies, render } from '../fixtures/node-configs.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { HOLDER, startDaemon } from '../fixtures/running-daemon.ts';
import { layerFile, noDirectoryNodes } from '../fixtures/test-node.ts';
import { type ComposefsNode, createComposefsNode } from './composefs-node.ts';
import { createToolNode, type ToolNode } from './tool-node.ts';

const tools: readonly ImageTool['name'][] = ['bootc', 'rpm-ostree'];
const restart: DisruptionAction = { type: 'Restart', service: 'chronyd.service' };

describe.skipIf(noDirectoryNodes !== undefined).each(tools)('a daemon on a host of %s', (tool) => {
  test('writes a config, goes into layering, takes a change live and leaves again', {
    timeout: patience(300_000),
  }, async () => {
    await using node = await createToolNode(tool);
    let boot = node.shutDownAndBoot;
    await using daemon = await startDaemon({ ...node, boot: () => boot() });
    const policyDigest = await policies(daemon);
    const want = async (config: string, image?: DigestedPullspec, level: Grant['level'] = 'Disrupt') => {
      const target = { config, ...present({ image }) };
      const spec: Partial<MachineConfigNodeSpec> = {
        configVersion: { desired: config },
        policyDigest,
        grant: { level, ...target, leaseHolder: HOLDER },
        ...(image === undefined
          ? {}
          : { configImage: { desiredImage: image }, imageSigningKeys: 'Disabled' }),
      };
      await daemon.want(spec);
      return daemon.until(config, (object) => isAt(config)(object) && isIn(object, image));
    };
    const build = (config: string, content: string, from?: string) =>
      node.addImage(
        [layerFile(CHRONY, content)],
        labelsOf({ config, base: node.stock, policyDigest, ...present({ from }) }),
      );

    await render(daemon, 'rendered-1', 'standard\n', ['extra=1']);
    await want('rendered-1');
    expect(await bootedArguments(node)).toContain('extra=1');
    expect(await read(node, CHRONY)).toBe('standard\n');

    const first = await build('rendered-2', 'one\n');
    await want('rendered-2', first);
    expect(await read(node, CHRONY)).toBe('one\n');
    expect(await bootedArguments(node)).not.toContain('extra=1');

    const bootID = await node.host.bootID();
    const second = await build('rendered-3', 'two\n', 'rendered-2');
    const live = await want('rendered-3', second, 'Live');
    expect(live.status?.lastUpdate?.actions).toEqual([restart]);
    expect(await node.host.bootID()).toBe(bootID);
    expect(await read(node, CHRONY)).toBe('two\n');

    await writeFile(path.join(node.root, 'etc/motd'), 'edited after it was applied live\n');
    await node.host.reboot('unplanned', deadline(10_000));
    await daemon.until('the boot', ({ status }) => status?.bootID !== bootID);
    expect((await node.backend.status(deadline(30_000))).booted.image).toBe(second);
    expect([await read(node, CHRONY), await read(node, '/etc/motd')]).toEqual([
      'two\n',
      'edited after it was applied live\n',
    ]);

    boot = node.losePowerAndBoot;
    await render(daemon, 'rendered-4', 'standard again\n');
    await want('rendered-4');
    const { booted } = await node.backend.status(deadline(30_000));
    expect(booted.image).toBe(node.stock);
    expect([await read(node, CHRONY), await read(node, '/etc/motd')]).toEqual([
      'standard again\n',
      'edited after it was applied live\n',
    ]);
  });

  test('takes a live update again after a loss of power, and takes nothing of it for changes by hand', {
    timeout: patience(300_000),
  }, async () => {
    await using node = await createToolNode(tool);
    let boot = node.shutDownAndBoot;
    await using daemon = await startDaemon({ ...node, boot: () => boot() });
    const policyDigest = await policies(daemon);
    const build = (config: string, files: Readonly<Record<string, string>>, from?: string) =>
      node.addImage(
        [
          ...Object.entries(files).map(([name, content]) => layerFile(name, content)),
          layerFile(nodePaths.imageConfig, JSON.stringify(carried(config, files))),
        ],
        labelsOf({ config, base: node.stock, policyDigest, ...present({ from }) }),
      );
    const want = async (config: string, image: DigestedPullspec) => {
      await daemon.want({
        configVersion: { desired: config },
        policyDigest,
        configImage: { desiredImage: image },
        imageSigningKeys: 'Disabled',
        grant: { level: 'Disrupt', config, image, leaseHolder: HOLDER },
      });
      return daemon.until(config, (object) => isAt(config)(object) && isIn(object, image));
    };
    await want('rendered-1', await build('rendered-1', { [CHRONY]: 'one\n', '/etc/gone': 'one\n' }));
    const second = await build('rendered-2', { [CHRONY]: 'two\n', '/etc/new/file': 'two\n' }, 'rendered-1');
    const live = await want('rendered-2', second);
    await writeFile(path.join(node.root, 'etc/motd'), 'edited\n');

    boot = node.losePowerAndBoot;
    await node.host.reboot('a loss of power', deadline(10_000));
    const after = await daemon.until(
      'the live update, made again',
      (object) =>
        isAt('rendered-2')(object) &&
        isIn(object, second) &&
        object.status?.lastUpdate?.startedAt !== live.status?.lastUpdate?.startedAt,
    );
    expect(after.status?.lastUpdate).toMatchObject({ result: 'Succeeded', actions: [restart] });
    expect([
      await read(node, CHRONY),
      await read(node, '/etc/new/file'),
      await read(node, '/etc/motd'),
    ]).toEqual(['two\n', 'two\n', 'edited\n']);
    await expect(read(node, '/etc/gone')).rejects.toThrow('ENOENT');
  });
  test('boots what it booted before, and no target without a grant, where another image was applied live', {
    timeout: patience(300_000),
  }, async () => {
    await using node = await createToolNode(tool);
    let boot = node.shutDownAndBoot;
    await using daemon = await startDaemon({ ...node, boot: () => boot() });
    const policyDigest = await policies(daemon);
    const build = (config: string, content: string, from?: string) =>
      node.addImage(
        [layerFile(CHRONY, content)],
        labelsOf({ config, base: node.stock, policyDigest, ...present({ from }) }),
      );
    const want = (config: string, image: DigestedPullspec, isGranted: boolean) =>
      daemon.want({
        configVersion: { desired: config },
        policyDigest,
        configImage: { desiredImage: image },
        imageSigningKeys: 'Disabled',
        ...(isGranted ? { grant: { level: 'Disrupt', config, image, leaseHolder: HOLDER } } : {}),
      });
    const first = await build('rendered-1', 'one\n');
    await want('rendered-1', first, true);
    await daemon.until('the first image', isAt('rendered-1'));
    const live = await build('rendered-2', 'two\n', 'rendered-1');
    const next = await build('rendered-3', 'three\n');
    for (const unasked of [node.losePowerAndBoot, node.shutDownAndBoot]) {
      await want('rendered-2', live, true);
      await daemon.until('the live update', isAt('rendered-2'));
      await want('rendered-3', next, false);
      const waits = await daemon.until('the plan', ({ status }) => status?.plan?.image === next);
      boot = unasked;
      await node.host.reboot('unplanned', deadline(10_000));
      const up = await daemon.until(
        'the plan again',
        ({ status }) => status?.bootID !== waits.status?.bootID && status?.plan?.image === next,
      );
      expect((await node.backend.status(deadline(30_000))).booted.image).toBe(first);
      expect(up.status).toMatchObject({
        configImage: { currentImage: first },
        lastUpdate: { image: first, withoutGrant: true, result: 'Succeeded' },
      });
      expect(await read(node, CHRONY)).toBe('one\n');
    }
    await want('rendered-3', next, true);
    const updated = await daemon.until('the target', isAt('rendered-3'));
    expect(updated.status?.lastUpdate?.withoutGrant).toBeUndefined();
  });
});

const machines: readonly (readonly [string, () => Promise<ToolNode | ComposefsNode>])[] = [
  ...tools.map((tool) => [tool, () => createToolNode(tool)] as const),
  ['bootc and composefs', createComposefsNode],
];

describe.skipIf(noDirectoryNodes !== undefined).each(machines)(
  'a target at the next reboot with %s',
  (_tool, create) => {
    test('boots after a loss of power and after a shutdown, and not once it was taken back', {
      timeout: patience(300_000),
    }, async () => {
      await using node = await create();
      let boot = node.shutDownAndBoot;
      await using daemon = await startDaemon({ ...node, boot: () => boot() });
      const policyDigest = await policies(daemon);
      const build = (config: string, content: string) =>
        node.addImage([layerFile(CHRONY, content)], labelsOf({ config, base: node.stock, policyDigest }));
      const want = (config: string, image: DigestedPullspec, more: Partial<MachineConfigNodeSpec> = {}) =>
        daemon.want({
          configVersion: { desired: config },
          policyDigest,
          configImage: { desiredImage: image },
          imageSigningKeys: 'Disabled',
          ...more,
        });
      let running = await build('rendered-0', 'zero\n');
      await want('rendered-0', running, {
        grant: { level: 'Disrupt', config: 'rendered-0', image: running, leaseHolder: HOLDER },
      });
      await daemon.until('the first image', isAt('rendered-0'));
      for (const [config, unasked] of [
        ['rendered-1', node.losePowerAndBoot],
        ['rendered-2', node.shutDownAndBoot],
      ] as const) {
        boot = unasked;
        const image = await build(config, `${config}\n`);
        const arm = async () => {
          await want(config, image, { nextBoot: { config, image } });
          return daemon.until(
            'the next boot',
            ({ status }) => status?.plan?.nextBoot === true && status.plan.image === image,
          );
        };
        await arm();
        await want(config, image);
        const taken = await daemon.until(
          'the plan alone',
          ({ status }) =>
            status?.plan?.image === image && status.plan.staged && status.plan.nextBoot !== true,
        );
        await node.host.reboot('unplanned', deadline(10_000));
        const up = await daemon.until(
          'the boot and the plan',
          ({ status }) => status?.bootID !== taken.status?.bootID && status?.plan?.image === image,
        );
        expect(up.status).toMatchObject({ configImage: { currentImage: running } });
        expect((await node.backend.status(deadline(30_000))).booted.image).toBe(running);

        await arm();
        await node.host.reboot('unplanned', deadline(10_000));
        const updated = await daemon.until('the target', isAt(config));
        expect(updated.status?.lastUpdate).toMatchObject({ image, result: 'Succeeded' });
        expect(updated.status?.lastUpdate?.withoutGrant).toBeUndefined();
        expect(await read(node, CHRONY)).toBe(`${config}\n`);
        running = image;
      }
    });
  },
);

interface Labelled {
  readonly config: string;
  readonly base: string;
  readonly policyDigest: string;
  /** The config from which a restart leads to it; any other takes a reboot. */
  readonly from?: string;
}

/** @returns the labels of an image, as the builder writes them. */
const labelsOf = ({ config, base, policyDigest, from }: Labelled) => ({
  [imageLabels.renderedConfig]: config,
  [imageLabels.baseImage]: base,
  [imageLabels.disruption]: encodeTransitionLabel({
    version: 1,
    policyDigest,
    transitions: from === undefined ? [] : [{ config: from, base, actions: [restart], causes: [] }],
  }),
});

/** A rendered config as an image carries it. */
const carried = (name: string, files: Readonly<Record<string, string>>) => ({
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineConfig',
  metadata: { name },
  spec: {
    config: {
      ignition: { version: '3.4.0' },
      storage: {
        files: Object.entries(files).map(([file, text]) => ({
          path: file,
          mode: 0o644,
          contents: { source: `data:,${encodeURIComponent(text)}` },
        })),
      },
    },
  },
});

const isIn = ({ status }: MachineConfigNode, image: DigestedPullspec | undefined) =>
  status?.mode === (image === undefined ? 'Standard' : 'Layered') &&
  status.configImage?.currentImage === image;
const read = (node: Pick<ToolNode, 'root'>, file: string) => readFile(path.join(node.root, file), 'utf8');
const bootedArguments = async (node: ToolNode) =>
  (await node.backend.status(deadline(30_000))).booted.kernelArguments;
