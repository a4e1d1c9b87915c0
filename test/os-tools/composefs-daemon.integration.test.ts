/** A whole daemon over bootc's stand-in without ostree: the course that the lab takes hours for. */
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import type { DisruptionAction } from '../../api/disruption-action.ts';
import { imageLabels } from '../../api/names.ts';
import { present } from '../../api/present.ts';
import type { DigestedPullspec } from '../../api/references.ts';
import { encodeTransitionLabel } from '../../disruption/transitions.ts';
import type { LayerItem } from '../../image/layer/entry.ts';
import { CHRONY, isAt, policies, render } from '../fixtures/node-configs.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { HOLDER, startDaemon } from '../fixtures/running-daemon.ts';
import { layerFile, noDirectoryNodes } from '../fixtures/test-node.ts';
import { createComposefsNode } from './composefs-node.ts';

const restart: DisruptionAction = { type: 'Restart', service: 'chronyd.service' };

describe.skipIf(noDirectoryNodes !== undefined)('a daemon on a host of bootc without ostree', () => {
  test('writes a config, goes into layering, reboots for each image, returns to one and leaves again', {
    timeout: patience(300_000),
  }, async () => {
    await using node = await createComposefsNode();
    let boot = node.shutDownAndBoot;
    const switched: string[] = [];
    const backend = node.backendWith((run) => async (command, options) => {
      if (command[1] === 'switch') switched.push(command.at(-1) ?? '');
      return run(command, options);
    });
    await using daemon = await startDaemon({ ...node, backend, boot: () => boot() });
    const policyDigest = await policies(daemon);
    const read = (file: string) => readFile(path.join(node.root, file), 'utf8');
    const ask = (config: string, image?: DigestedPullspec) =>
      daemon.want({
        configVersion: { desired: config },
        policyDigest,
        grant: { level: 'Disrupt', config, ...present({ image }), leaseHolder: HOLDER },
        ...(image === undefined
          ? {}
          : { configImage: { desiredImage: image }, imageSigningKeys: 'Disabled' as const }),
      });
    const want = async (config: string, image?: DigestedPullspec) => {
      await ask(config, image);
      const mode = image === undefined ? 'Standard' : 'Layered';
      return daemon.until(
        config,
        (object) =>
          isAt(config)(object) &&
          object.status?.mode === mode &&
          object.status.configImage?.currentImage === image,
      );
    };
    const build = (config: string, content: string, from?: string) =>
      node.addImage([layerFile(CHRONY, content)], {
        [imageLabels.renderedConfig]: config,
        [imageLabels.baseImage]: node.stock,
        [imageLabels.disruption]: encodeTransitionLabel({
          version: 1,
          policyDigest,
          transitions:
            from === undefined ? [] : [{ config: from, base: node.stock, actions: [restart], causes: [] }],
        }),
      });

    await render(daemon, 'rendered-0', 'refused\n', ['extra=1']);
    await ask('rendered-0');
    const refused = await daemon.until('the refusal', ({ status }) =>
      (status?.conditions ?? []).some(({ reason }) => reason === 'PrepareRefused'),
    );
    expect(refused.status?.conditions?.find(({ reason }) => reason === 'PrepareRefused')?.message).toMatch(
      /kernelArguments extra=1: bootc can't set kernel arguments .*; expected on-cluster layering/,
    );
    expect(refused.status?.osBackend).toMatchObject({ appliesLive: false, setsKernelArguments: false });

    await render(daemon, 'rendered-1', 'standard\n');
    await want('rendered-1');
    expect(await read(CHRONY)).toBe('standard\n');

    const first = await build('rendered-2', 'one\n');
    await want('rendered-2', first);
    expect(await read(CHRONY)).toBe('one\n');

    const second = await build('rendered-3', 'two\n', 'rendered-2');
    const updated = await want('rendered-3', second);
    expect(updated.status?.lastUpdate).toMatchObject({
      actions: [{ type: 'Reboot' }],
      source: expect.stringContaining("can't apply an image to the running system"),
    });
    expect(await read(CHRONY)).toBe('two\n');

    await writeFile(path.join(node.root, 'etc/motd'), 'edited in the second\n');
    boot = node.losePowerAndBoot;
    await want('rendered-2', first);
    expect([await read(CHRONY), await read('/etc/motd')]).toEqual(['one\n', 'edited in the second\n']);

    await render(daemon, 'rendered-4', 'standard again\n');
    await want('rendered-4');
    const { booted } = await node.backend.status(deadline(30_000));
    expect(booted.image).toBe(node.stock);
    expect([await read(CHRONY), await read('/etc/motd')]).toEqual([
      'standard again\n',
      'edited in the second\n',
    ]);
    expect(switched).toEqual([first, second, node.stock]);
  });

  test('rolls back from an image whose health check fails, without the registry, with an edit of the admin’s', {
    timeout: patience(300_000),
  }, async () => {
    await using node = await createComposefsNode();
    let isAway = false;
    const backend = node.backendWith((run) => async (command, options) => {
      if (isAway && command[1] === 'switch') throw new Error('the registry is away');
      return run(command, options);
    });
    let second: DigestedPullspec | undefined;
    const boot = async () => {
      await node.losePowerAndBoot();
      isAway = (await node.backend.status(deadline(30_000))).booted.image === second;
    };
    await using daemon = await startDaemon({ ...node, backend, boot });
    const policyDigest = await policies(daemon);
    const build = (config: string, ...more: readonly LayerItem[]) =>
      node.addImage([layerFile(CHRONY, `${config}\n`), ...more], {
        [imageLabels.renderedConfig]: config,
        [imageLabels.baseImage]: node.stock,
      });
    const ask = (config: string, image: DigestedPullspec) =>
      daemon.want({
        configVersion: { desired: config },
        policyDigest,
        configImage: { desiredImage: image },
        imageSigningKeys: 'Disabled',
        grant: { level: 'Disrupt', config, image, leaseHolder: HOLDER },
      });
    const first = await build('rendered-1');
    await ask('rendered-1', first);
    await daemon.until('the first image', isAt('rendered-1'));
    await writeFile(path.join(node.root, 'etc/motd'), 'edited\n');
    const failing = layerFile('/etc/shale/health.d/10-net', '#!/bin/sh\nexit 4\n', 0o755);
    second = await build('rendered-2', failing);
    await ask('rendered-2', second);
    const back = await daemon.until(
      'the rollback',
      ({ status }) =>
        status?.lastUpdate?.result === 'RolledBack' && status.configImage?.currentImage === first,
    );
    expect(isAway).toBe(false);
    expect(back.status?.lastUpdate).toMatchObject({ config: 'rendered-2', actions: [{ type: 'Reboot' }] });
    expect((await node.backend.status(deadline(30_000))).booted.image).toBe(first);
    const read = (file: string) => readFile(path.join(node.root, file), 'utf8');
    expect([await read(CHRONY), await read('/etc/motd')]).toEqual(['rendered-1\n', 'edited\n']);
  });
});
