/** The daemon's whole life against an API server and a registry: the order of its steps over reboots. */
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import type { DisruptionAction } from '../api/disruption-action.ts';
import { ConfigMaps, Leases } from '../api/kubernetes.ts';
import type { Grant, MachineConfigNode, MachineConfigNodeSpec } from '../api/machine-config-node.ts';
import {
  DEFAULT_LEASE_NAMESPACE,
  DEFAULT_NAMESPACE,
  imageLabels,
  REGISTRY_CAS_CONFIG_MAP,
} from '../api/names.ts';
import { dataDigest } from '../api/node-certificates.ts';
import { present } from '../api/present.ts';
import { type DigestedPullspec, parseDigestedPullspec } from '../api/references.ts';
import { encodeTransitionLabel } from '../disruption/transitions.ts';
import { CHRONY, degraded, isAt, policies, render, standardSpec } from '../test/fixtures/node-configs.ts';
import { deadline, patience } from '../test/fixtures/patience.ts';
import { type DaemonUnderTest, HOLDER, NODE, startDaemon } from '../test/fixtures/running-daemon.ts';
import { createTestNode, layerFile, noDirectoryNodes, type TestNode } from '../test/fixtures/test-node.ts';
import { directoryNodeLayout } from '../workshop/sandbox/node/directory-host.ts';
import { readServiceRecords } from '../workshop/sandbox/node/service-recorder.ts';
import { stockImage } from '../workshop/sandbox/node/stock-image.ts';

const POLICY = `sha256:${'a'.repeat(64)}`;
const restart: DisruptionAction = { type: 'Restart', service: 'chronyd.service' };

/** An image as the builder makes it, with what it asks of a node that runs `from`. */
function build(
  node: TestNode,
  config: string,
  content: string,
  from?: { readonly config: string; readonly actions: DisruptionAction[] },
): DigestedPullspec {
  const transitions =
    from === undefined ? [] : [{ config: from.config, base: node.stock, actions: from.actions, causes: [] }];
  return node.addImage([layerFile(CHRONY, content)], {
    [imageLabels.renderedConfig]: config,
    [imageLabels.baseImage]: node.stock,
    [imageLabels.disruption]: encodeTransitionLabel({ version: 1, policyDigest: POLICY, transitions }),
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
  policyDigest: POLICY,
  ...present({ grant: level && { level, config, image, leaseHolder: HOLDER } }),
});
const isStaged = (config: string) => (object: MachineConfigNode) => object.status?.plan?.config === config;
const read = (node: TestNode, file: string) => readFile(path.join(node.host.root, file), 'utf8');

describe.skipIf(noDirectoryNodes !== undefined)('a daemon', { timeout: patience(120_000) }, () => {
  test('goes into layering by a reboot and takes a change live', async () => {
    await using node = await createTestNode();
    await using daemon = await startDaemon(node);
    const first = build(node, 'rendered-1', 'one\n');
    await daemon.want(layered('rendered-1', first));
    const staged = await daemon.until('the plan', isStaged('rendered-1'));
    expect(staged.status?.plan?.actions).toEqual([{ type: 'Reboot' }]);
    expect(staged.status?.baseImage).toBe(node.stock);
    const before = await node.host.bootID();
    await daemon.want(layered('rendered-1', first, 'Live'));
    await daemon.restart();
    await daemon.until('the plan again', isStaged('rendered-1'));
    expect(await node.host.bootID()).toBe(before);
    await daemon.want(layered('rendered-1', first, 'Disrupt'));
    const updated = await daemon.until('the first image', isAt('rendered-1'));
    const booted = await node.host.bootID();
    expect(booted).not.toBe(before);
    expect(updated.status).toMatchObject({
      mode: 'Layered',
      baseImage: node.stock,
      configImage: { currentImage: first },
      bootID: booted,
      lastUpdate: { result: 'Succeeded', bootIDBefore: before, bootIDAfter: booted },
    });

    const second = build(node, 'rendered-2', 'two\n', { config: 'rendered-1', actions: [restart] });
    await daemon.want(layered('rendered-2', second, 'Live'));
    const live = await daemon.until('the second image', isAt('rendered-2'));
    expect(live.status?.bootID).toBe(booted);
    expect(live.status?.lastUpdate?.actions).toEqual([restart]);
    expect(await read(node, CHRONY)).toBe('two\n');
    const records = await readServiceRecords(directoryNodeLayout(node.dir));
    expect(records.filter(({ action }) => action === 'restart')).toMatchObject([
      { unit: 'chronyd.service', bootID: booted },
    ]);
    const { staged: next } = await node.backend.status(deadline(10_000));
    expect(next?.image).toBe(second);

    const third = build(node, 'rendered-3', 'three\n', { config: 'rendered-2', actions: [] });
    await daemon.want(layered('rendered-3', third, 'Live'));
    await daemon.until('the third image', isAt('rendered-3'));
    // Power is lost: what the second wrote is no edit that the third would keep.
    await daemon.boot();
    expect((await node.backend.status(deadline(10_000))).booted.image).toBe(third);
    expect(await read(node, CHRONY)).toBe('three\n');
  });

  test('asks for a reboot when an action fails, and does not reboot without leave', async () => {
    await using node = await createTestNode();
    await using daemon = await startDaemon(node, { actionLimitMs: 500 });
    await enterLayering(node, daemon);
    const bootID = await node.host.bootID();
    await writeFile(
      directoryNodeLayout(node.dir).serviceFaults,
      JSON.stringify({ 'chronyd.service': 'hang' }),
    );
    const second = build(node, 'rendered-2', 'two\n', { config: 'rendered-1', actions: [restart] });
    await daemon.want(layered('rendered-2', second, 'Live'));
    const asks = await daemon.until(
      'the plan to reboot',
      ({ status }) => status?.plan?.config === 'rendered-2' && status.plan.actions[0]?.type === 'Reboot',
    );
    const liveFailure = 'restart chronyd.service: took longer than 0.5 s';
    expect(asks.status?.plan).toMatchObject({
      source: `could not be applied live: ${liveFailure}`,
      liveFailure,
    });
    expect(await node.host.bootID()).toBe(bootID);
    await daemon.restart();
    await daemon.want(layered('rendered-2', second, 'Disrupt'));
    const updated = await daemon.until('the second image', isAt('rendered-2'));
    expect(updated.status?.bootID).not.toBe(bootID);
    expect(updated.status?.lastUpdate).toMatchObject({ result: 'Succeeded', liveFailure });
    expect(await read(node, CHRONY)).toBe('two\n');
  });

  test('rolls back from an image that failed live to the one before', async () => {
    await using node = await createTestNode();
    await using daemon = await startDaemon(node);
    const first = await enterLayering(node, daemon);
    const faults = directoryNodeLayout(node.dir).serviceFaults;
    await writeFile(faults, JSON.stringify({ 'chronyd.service': 'fail' }));
    const second = build(node, 'rendered-2', 'two\n', { config: 'rendered-1', actions: [restart] });
    await daemon.want(layered('rendered-2', second, 'Live'));
    await daemon.until('the plan to reboot', ({ status }) => status?.plan?.actions[0]?.type === 'Reboot');
    await daemon.want(layered('rendered-1', first));
    await daemon.until('the plan to roll back', isStaged('rendered-1'));
    await daemon.want(layered('rendered-1', first, 'Disrupt'));
    await daemon.until('the first image', isAt('rendered-1'));
    expect(await read(node, CHRONY)).toBe('one\n');
  });

  test('tells what keeps it from staging, and goes on once it can', async () => {
    await using node = await createTestNode();
    await using daemon = await startDaemon(node);
    const missing = parseDigestedPullspec(`registry.test:5000/os/image@sha256:${'f'.repeat(64)}`);
    await daemon.want(layered('rendered-1', missing));
    const told = await daemon.until('the problem', ({ status }) =>
      (status?.conditions ?? []).some(({ reason }) => reason === 'PrepareFailed'),
    );
    expect(told.status?.conditions?.find(({ type }) => type === 'UpdatePrepared')?.message).toContain(
      'not found',
    );
    await enterLayering(node, daemon);
  });

  test('does not act while somebody else holds the lease', async () => {
    await using node = await createTestNode();
    await using daemon = await startDaemon(node);
    await holdLease(daemon, 'node-maintenance');
    const image = build(node, 'rendered-1', 'one\n');
    await daemon.want(layered('rendered-1', image, 'Disrupt'));
    const bootID = await node.host.bootID();
    await daemon.until('the obstacle', ({ status }) =>
      (status?.conditions ?? []).some(({ message }) => message.includes('held by node-maintenance')),
    );
    expect(await node.host.bootID()).toBe(bootID);
    await holdLease(daemon, HOLDER);
    await daemon.until('the image', isAt('rendered-1'));
  });

  test('brings registry CAs to the disk while it waits for leave', async () => {
    await using node = await createTestNode();
    await using daemon = await startDaemon(node);
    const data = { 'registry.test..5000': '-----BEGIN CERTIFICATE-----\n' };
    const registryCAs = dataDigest(data);
    const metadata = { name: REGISTRY_CAS_CONFIG_MAP };
    await daemon.client.create(
      ConfigMaps,
      { apiVersion: 'v1', kind: 'ConfigMap', metadata, data },
      { namespace: DEFAULT_NAMESPACE },
    );
    const image = build(node, 'rendered-1', 'one\n');
    await daemon.want({ ...layered('rendered-1', image), certificates: { registryCAs } });
    await daemon.until('both', (object) => {
      return isStaged('rendered-1')(object) && object.status?.certificates?.registryCAs === registryCAs;
    });
    expect(await read(node, '/etc/containers/certs.d/registry.test:5000/shale-ca.crt')).toBe(
      data['registry.test..5000'],
    );
  });

  test('writes a config in standard mode, enters layering and leaves it again', async () => {
    await using node = await createTestNode();
    await using daemon = await startDaemon(node);
    const policyDigest = await policies(daemon);
    await render(daemon, 'rendered-1', 'standard\n');
    const standard = standardSpec(policyDigest);
    await daemon.want(standard('rendered-1', 'Disrupt'));
    const first = await daemon.until('the first config', isAt('rendered-1'));
    expect(first.status).toMatchObject({ mode: 'Standard', baseImage: node.stock });
    expect(await read(node, CHRONY)).toBe('standard\n');

    await render(daemon, 'rendered-2', 'live\n');
    const bootID = await node.host.bootID();
    await daemon.want(standard('rendered-2', 'Live'));
    const live = await daemon.until('the second config', isAt('rendered-2'));
    expect(live.status).toMatchObject({ bootID, lastUpdate: { actions: [restart] } });
    expect(await read(node, CHRONY)).toBe('live\n');

    await render(daemon, 'rendered-3', 'live\n', ['quiet']);
    await daemon.want(standard('rendered-3', 'Disrupt'));
    await daemon.until('the third config', isAt('rendered-3'));
    const { booted } = await node.backend.status(deadline(10_000));
    expect(booted.kernelArguments).toContain('quiet');
    expect(await read(node, CHRONY)).toBe('live\n');

    const image = build(node, 'rendered-3', 'layered\n');
    await daemon.want(layered('rendered-3', image, 'Disrupt'));
    await daemon.until(
      'the image',
      (object) => isAt('rendered-3')(object) && object.status?.mode === 'Layered',
    );
    expect(await read(node, CHRONY)).toBe('layered\n');

    await daemon.want(standard('rendered-2', 'Disrupt'));
    const out = await daemon.until('standard mode', isAt('rendered-2'));
    expect(out.status).toMatchObject({ mode: 'Standard', baseImage: node.stock });
    expect(await read(node, CHRONY)).toBe('live\n');

    await daemon.want(layered('rendered-3', image, 'Disrupt'));
    await daemon.until('the image again', isAt('rendered-3'));
    expect(await read(node, CHRONY)).toBe('layered\n');
  });

  test('keeps a config that is the default of one image when another image has another default', async () => {
    await using node = await createTestNode();
    await using daemon = await startDaemon(node);
    const policyDigest = await policies(daemon);
    const standard = standardSpec(policyDigest);
    const [same, other] = ['config\n', 'other\n'].map((content) =>
      node.addWholeImage({
        labels: {},
        layers: [stockImage(), [layerFile('/usr/etc/chrony.conf', content)]],
      }),
    );
    const onImage = (config: string, image: DigestedPullspec | undefined) => ({
      ...standard(config, 'Disrupt'),
      ...present({ osImage: image }),
    });
    await render(daemon, 'rendered-1', 'config\n');
    await daemon.want(onImage('rendered-1', same));
    await daemon.until('the config on its default', isAt('rendered-1'));
    await render(daemon, 'rendered-2', 'config\n', ['quiet']);
    await daemon.want(onImage('rendered-2', other));
    const updated = await daemon.until(
      'the other image',
      ({ status }) =>
        (status?.conditions ?? []).some(({ type, status: is }) => type === 'NodeDegraded' && is === 'True') ||
        (status?.baseImage === other && status?.configVersion?.current === 'rendered-2'),
    );
    expect(degraded(updated)).toBeUndefined();
    expect(await read(node, CHRONY)).toBe('config\n');
    await daemon.until('the config on another default', isAt('rendered-2'));

    // What Shale wrote in both deployments is still its own: without the config, the image's own version is back.
    await render(daemon, 'rendered-3', 'changed\n');
    await daemon.want(onImage('rendered-3', other));
    await daemon.until('the next config', isAt('rendered-3'));
    expect(await read(node, CHRONY)).toBe('changed\n');
  });
});

async function enterLayering(node: TestNode, daemon: DaemonUnderTest): Promise<DigestedPullspec> {
  const first = build(node, 'rendered-1', 'one\n');
  await daemon.want(layered('rendered-1', first, 'Disrupt'));
  await daemon.until('the first image', isAt('rendered-1'));
  return first;
}

async function holdLease({ client }: DaemonUnderTest, holderIdentity: string): Promise<void> {
  const body = { spec: { holderIdentity } };
  const where = { namespace: DEFAULT_LEASE_NAMESPACE };
  await client.patch(Leases, `node-${NODE}`, { type: 'merge', body }, where);
}
