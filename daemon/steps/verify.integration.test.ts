/** Health checks that run as programs after a boot, and the rollback when they fail. */
import { readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { formatRetryRequest } from '../../api/annotation-requests.ts';
import { type Node, Nodes } from '../../api/kubernetes.ts';
import { MachineConfigs } from '../../api/machine-config.ts';
import {
  type Grant,
  type MachineConfigNode,
  type MachineConfigNodeSpec,
  MachineConfigNodes,
} from '../../api/machine-config-node.ts';
import { annotations, imageLabels } from '../../api/names.ts';
import { present } from '../../api/present.ts';
import type { DigestedPullspec } from '../../api/references.ts';
import { CHRONY, degraded, isAt, policies, render, standardSpec } from '../../test/fixtures/node-configs.ts';
import { deadline, patience } from '../../test/fixtures/patience.ts';
import { type DaemonUnderTest, HOLDER, NODE, startDaemon } from '../../test/fixtures/running-daemon.ts';
import { createTestNode, layerFile, noDirectoryNodes, type TestNode } from '../../test/fixtures/test-node.ts';
import { reportNode } from '../../workshop/sandbox/machines.ts';

const CHECK = '/etc/shale/health.d/10-net';
const FAILING = '#!/bin/sh\necho looking for a route\necho no route to the gateway >&2\nexit 4\n';
/** Passes where the node's own directory says so: a check sees the node, not the machine that it lies on. */
const LOOKING = '#!/bin/sh\ntest -e "$SHALE_ROOT/var/well" -a -e var/well || { echo not well; exit 1; }\n';

function build(node: TestNode, config: string, content: string, check?: string): DigestedPullspec {
  const checks = check === undefined ? [] : [layerFile(CHECK, check, 0o755)];
  return node.addImage([layerFile(CHRONY, content), ...checks], {
    [imageLabels.renderedConfig]: config,
    [imageLabels.baseImage]: node.stock,
  });
}

const layered = (
  config: string,
  image: DigestedPullspec,
  level: Grant['level'] = 'Disrupt',
): Partial<MachineConfigNodeSpec> => ({
  configVersion: { desired: config },
  configImage: { desiredImage: image },
  imageSigningKeys: 'Disabled',
  grant: { level, config, image, leaseHolder: HOLDER },
});
const read = (node: TestNode, file: string) => readFile(path.join(node.host.root, file), 'utf8');
const booted = async (node: TestNode) => (await node.backend.status(deadline(10_000))).booted;
const isBack = (object: MachineConfigNode) =>
  degraded(object)?.reason === 'HealthCheckFailed' && object.status?.lastUpdate?.result === 'RolledBack';

async function enterLayering(node: TestNode, daemon: DaemonUnderTest): Promise<DigestedPullspec> {
  const first = build(node, 'rendered-1', 'one\n');
  await daemon.want(layered('rendered-1', first));
  await daemon.until('the first image', isAt('rendered-1'));
  return first;
}

describe.skipIf(noDirectoryNodes !== undefined)(
  'after a reboot into a target',
  { timeout: patience(120_000) },
  () => {
    test('a node whose check fails rolls back, says why, and does not try again', async () => {
      await using node = await createTestNode();
      await using daemon = await startDaemon(node);
      const first = await enterLayering(node, daemon);
      await daemon.want(layered('rendered-2', build(node, 'rendered-2', 'two\n', FAILING)));
      const back = await daemon.until('the rollback', isBack);
      expect(degraded(back)?.message).toBe(
        `health check ${CHECK} failed (exit code 4): looking for a route; no route to the gateway`,
      );
      expect(back.status).toMatchObject({
        mode: 'Layered',
        configVersion: { current: 'rendered-1', desired: 'rendered-2' },
        configImage: { currentImage: first },
        lastUpdate: { config: 'rendered-2', result: 'RolledBack', actions: [{ type: 'Reboot' }] },
      });
      expect((await booted(node)).image).toBe(first);
      expect(await read(node, CHRONY)).toBe('one\n');
      await expect(read(node, CHECK)).rejects.toThrow('ENOENT');
      const bootID = await node.host.bootID();
      await daemon.restart();
      await daemon.until('the same again', isBack);
      expect(await node.host.bootID()).toBe(bootID);

      await daemon.want(layered('rendered-3', build(node, 'rendered-3', 'three\n')));
      const mended = await daemon.until('the next image', isAt('rendered-3'));
      expect(degraded(mended)).toBeUndefined();
    });

    test('a target that failed is taken again once for each request, and kept once its cause is fixed', async () => {
      await using node = await createTestNode();
      await using daemon = await startDaemon(node);
      await enterLayering(node, daemon);
      await daemon.want(layered('rendered-2', build(node, 'rendered-2', 'two\n', LOOKING)));
      const first = await daemon.until('the rollback', isBack);
      await requestRetry(daemon, first);
      const isBackAgain = (object: MachineConfigNode) =>
        isBack(object) && object.status?.lastUpdate?.finishedAt !== first.status?.lastUpdate?.finishedAt;
      const second = await daemon.until('the rollback again', isBackAgain);
      const bootID = await node.host.bootID();
      expect(bootID).not.toBe(first.status?.bootID);
      await daemon.restart();
      await daemon.until('the same again', isBackAgain);
      expect(await node.host.bootID()).toBe(bootID);

      await writeFile(path.join(node.host.root, 'var/well'), '');
      await requestRetry(daemon, second);
      const fixed = await daemon.until('the target', isAt('rendered-2'));
      expect(degraded(fixed)).toBeUndefined();
      expect(fixed.status?.lastUpdate).toMatchObject({ config: 'rendered-2', result: 'Succeeded' });
      expect(await read(node, CHRONY)).toBe('two\n');
    });

    test('a check that passes late keeps the target', async () => {
      await using node = await createTestNode();
      await using daemon = await startDaemon(node, { healthLimits: { checksMs: 60_000, kubeletMs: 1_000 } });
      const image = build(node, 'rendered-1', 'one\n', LOOKING);
      await daemon.want(layered('rendered-1', image));
      await daemon.until('the failing check', ({ status }) =>
        (status?.conditions ?? []).some(
          ({ reason, message }) => reason === 'HealthChecks' && message.includes('not well'),
        ),
      );
      await daemon.restart();
      await writeFile(path.join(node.host.root, 'var/well'), '');
      await daemon.until('the image', isAt('rendered-1'));
    });

    test('a kubelet that does not come back is a reason to roll back', async () => {
      await using node = await createTestNode();
      await using daemon = await startDaemon(node);
      const object: Node = { apiVersion: 'v1', kind: 'Node', metadata: { name: NODE } };
      await daemon.client.create(Nodes, object);
      await reportNode(daemon.client, NODE, { type: 'up', bootID: await node.host.bootID() });
      await daemon.want(layered('rendered-1', build(node, 'rendered-1', 'one\n')));
      const back = await daemon.until('the rollback', isBack);
      expect(degraded(back)?.message).toContain(
        'the kubelet was not Ready within 1 s: it has not reported since',
      );
      expect(back.status?.configVersion?.current).toBe('');
      expect((await booted(node)).image).toBe(node.stock);
    });

    test('standard mode comes back with its files and kernel arguments', async () => {
      await using node = await createTestNode();
      await using daemon = await startDaemon(node);
      const standard = standardSpec(await policies(daemon));
      await render(daemon, 'rendered-1', 'standard\n', ['quiet=1']);
      await daemon.want(standard('rendered-1', 'Disrupt'));
      await daemon.until('the first config', isAt('rendered-1'));
      await daemon.want(layered('rendered-2', build(node, 'rendered-2', 'two\n', FAILING)));
      const back = await daemon.until('the rollback', isBack);
      expect(back.status).toMatchObject({ mode: 'Standard', configVersion: { current: 'rendered-1' } });
      expect(await read(node, CHRONY)).toBe('standard\n');
      expect((await booted(node)).kernelArguments).toContain('quiet=1');
      await daemon.want(standard('rendered-1', 'Disrupt'));
      await daemon.until('no drift', isAt('rendered-1'));
    });

    test('a config with other kernel arguments is undone whole', async () => {
      await using node = await createTestNode();
      await using daemon = await startDaemon(node);
      const standard = standardSpec(await policies(daemon));
      await render(daemon, 'rendered-1', 'standard\n');
      await daemon.want(standard('rendered-1', 'Disrupt'));
      await daemon.until('the first config', isAt('rendered-1'));
      await renderWithCheck(daemon, 'rendered-2', ['quiet=1']);
      await daemon.want(standard('rendered-2', 'Disrupt'));
      const back = await daemon.until('the rollback', isBack);
      expect(back.status?.configVersion?.current).toBe('rendered-1');
      expect((await booted(node)).kernelArguments).not.toContain('quiet=1');
      expect(await read(node, CHRONY)).toBe('standard\n');
      await expect(read(node, CHECK)).rejects.toThrow('ENOENT');
    });

    test('a config of files alone stays, degraded, until its checks pass', async () => {
      await using node = await createTestNode();
      await using daemon = await startDaemon(node);
      const standard = standardSpec(await policies(daemon));
      await renderWithCheck(daemon, 'rendered-1', []);
      await daemon.want(standard('rendered-1', 'Disrupt'));
      const sick = await daemon.until(
        'the failure',
        (object) => degraded(object)?.reason === 'HealthCheckFailed',
      );
      expect(sick.status).toMatchObject({
        configVersion: { current: 'rendered-1' },
        lastUpdate: { result: 'Failed' },
      });
      const bootID = await node.host.bootID();
      await rm(path.join(node.host.root, CHECK));
      await daemon.restart();
      await daemon.until('health', (object) => object.status?.lastUpdate?.result === 'Succeeded');
      expect(await node.host.bootID()).toBe(bootID);
    });

    test('the way out of layering leads back into the image', async () => {
      await using node = await createTestNode();
      await using daemon = await startDaemon(node);
      const first = await enterLayering(node, daemon);
      const standard = standardSpec(await policies(daemon));
      await renderWithCheck(daemon, 'rendered-2', []);
      await daemon.want(standard('rendered-2', 'Disrupt'));
      const back = await daemon.until('the rollback', isBack);
      expect(back.status).toMatchObject({ mode: 'Layered', configImage: { currentImage: first } });
      expect((await booted(node)).image).toBe(first);
      expect(await read(node, CHRONY)).toBe('one\n');
      await expect(read(node, CHECK)).rejects.toThrow('ENOENT');
    });

    test('a newer target is gone on to, not back from', async () => {
      await using node = await createTestNode();
      await using daemon = await startDaemon(node, { healthLimits: { checksMs: 3_000, kubeletMs: 1_000 } });
      await enterLayering(node, daemon);
      const bad = build(node, 'rendered-2', 'two\n', FAILING);
      await daemon.want(layered('rendered-2', bad));
      await daemon.until('the failing check', ({ status }) =>
        (status?.conditions ?? []).some(({ reason }) => reason === 'HealthChecks'),
      );
      const good = build(node, 'rendered-3', 'three\n');
      const { grant: _none, ...wish } = layered('rendered-3', good);
      await daemon.want(wish);
      const staged = await daemon.until('the plan', ({ status }) => status?.plan?.config === 'rendered-3');
      expect(staged.status).toMatchObject({
        configVersion: { current: 'rendered-2' },
        lastUpdate: { result: 'Failed' },
      });
      await daemon.want(layered('rendered-3', good));
      await daemon.until('the newer target', isAt('rendered-3'));
    });
  },
);

/** As shale retry does. */
async function requestRetry({ client }: DaemonUnderTest, { status }: MachineConfigNode): Promise<void> {
  const { config = '', image, finishedAt: failedAt = '' } = status?.lastUpdate ?? {};
  const text = formatRetryRequest({ config, ...present({ image }), failedAt, by: 'ann', at: '' });
  const body = { metadata: { annotations: { [annotations.retry]: text } } };
  await client.patch(MachineConfigNodes, NODE, { type: 'merge', body });
}

/** A config that brings a check which fails. */
async function renderWithCheck(
  { client }: DaemonUnderTest,
  name: string,
  kernelArguments: string[],
): Promise<void> {
  const source = `data:,${encodeURIComponent(FAILING)}`;
  const files = [{ path: CHECK, mode: 0o755, overwrite: true, contents: { source } }];
  await client.create(MachineConfigs, {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name },
    spec: { config: { ignition: { version: '3.4.0' }, storage: { files } }, kernelArguments },
  });
}
