/** A reboot that an admin asks for, on a directory node in both modes: one boot, and nothing else changed. */
import { rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { formatRebootRequest } from '../../api/annotation-requests.ts';
import type { Grant, MachineConfigNodeSpec } from '../../api/machine-config-node.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { annotations, imageLabels } from '../../api/names.ts';
import type { DigestedPullspec } from '../../api/references.ts';
import { CHRONY, degraded, isAt, policies, render, standardSpec } from '../../test/fixtures/node-configs.ts';
import { deadline, patience } from '../../test/fixtures/patience.ts';
import { type DaemonUnderTest, HOLDER, NODE, startDaemon } from '../../test/fixtures/running-daemon.ts';
import { createTestNode, layerFile, noDirectoryNodes, type TestNode } from '../../test/fixtures/test-node.ts';

/** Passes where the node's own directory says so. */
const LOOKING = '#!/bin/sh\ntest -e "$SHALE_ROOT/var/well" || { echo not well; exit 1; }\n';

function build(node: TestNode, check?: string): DigestedPullspec {
  const checks = check === undefined ? [] : [layerFile('/etc/shale/health.d/10-net', check, 0o755)];
  return node.addImage([layerFile(CHRONY, 'one\n'), ...checks], {
    [imageLabels.renderedConfig]: 'rendered-1',
    [imageLabels.baseImage]: node.stock,
  });
}

/** As shale reboot does. */
async function requestReboot({ client }: DaemonUnderTest, bootID: string): Promise<void> {
  const text = formatRebootRequest({ bootID, by: 'ann', reason: 'new memory', at: '' });
  const body = { metadata: { annotations: { [annotations.reboot]: text } } };
  await client.patch(MachineConfigNodes, NODE, { type: 'merge', body });
}

const layered = (image: DigestedPullspec) => ({
  configVersion: { desired: 'rendered-1' },
  configImage: { desiredImage: image },
  imageSigningKeys: 'Disabled',
});

/** Has a node run rendered-1 in either mode. @returns its spec without the grant, and the grant. */
async function settle(node: TestNode, daemon: DaemonUnderTest, isLayered: boolean) {
  const image = isLayered ? build(node) : undefined;
  if (image === undefined) await render(daemon, 'rendered-1', 'one\n');
  const spec: Partial<MachineConfigNodeSpec> =
    image === undefined ? standardSpec(await policies(daemon))('rendered-1') : layered(image);
  const grant: Grant = {
    level: 'Disrupt',
    config: 'rendered-1',
    leaseHolder: HOLDER,
    ...(image === undefined ? {} : { image }),
  };
  await daemon.want({ ...spec, grant });
  await daemon.until('the config', isAt('rendered-1'));
  await daemon.want(spec);
  return { spec, grant };
}

describe.skipIf(noDirectoryNodes !== undefined)('a requested reboot', { timeout: patience(120_000) }, () => {
  test.each([
    ['layered', true],
    ['standard', false],
  ])('comes once, when it is granted, in %s mode', async (_, isLayered) => {
    await using node = await createTestNode();
    await using daemon = await startDaemon(node);
    const { spec, grant } = await settle(node, daemon, isLayered);
    const before = await node.host.bootID();
    await requestReboot(daemon, before);
    const waiting = await daemon.until('the plan', ({ status }) => status?.plan?.staged === true);
    expect(waiting.status?.plan).toMatchObject({ config: 'rendered-1', actions: [{ type: 'Reboot' }] });
    expect(waiting.status?.conditions).toContainEqual(
      expect.objectContaining({
        type: 'UpdatePrepared',
        message: 'Waiting for permission to reboot: ann requested a reboot: new memory',
      }),
    );
    expect(await node.host.bootID()).toBe(before);

    await daemon.want({ ...spec, grant });
    const after = await daemon.until(
      'the reboot',
      (object) => isAt('rendered-1')(object) && object.status?.bootID !== before,
    );
    expect(after.status?.lastUpdate).toMatchObject({
      config: 'rendered-1',
      result: 'Succeeded',
      actions: [{ type: 'Reboot' }],
      requested: true,
      source: 'ann requested a reboot: new memory',
      bootIDBefore: before,
    });
    const bootID = await node.host.bootID();
    await daemon.restart();
    await daemon.until('the same again', isAt('rendered-1'));
    expect(await node.host.bootID()).toBe(bootID);
  });

  test('after which the node is not healthy is reported, and nothing is rolled back', async () => {
    await using node = await createTestNode();
    await using daemon = await startDaemon(node);
    const image = build(node, LOOKING);
    const grant: Grant = { level: 'Disrupt', config: 'rendered-1', image, leaseHolder: HOLDER };
    await writeFile(path.join(node.host.root, 'var/well'), '');
    await daemon.want({ ...layered(image), grant });
    await daemon.until('the image', isAt('rendered-1'));
    await rm(path.join(node.host.root, 'var/well'));
    const before = await node.host.bootID();
    await requestReboot(daemon, before);
    const sick = await daemon.until(
      'the failed check',
      (object) => degraded(object)?.reason === 'HealthCheckFailed',
    );
    expect(sick.status?.lastUpdate).toMatchObject({
      config: 'rendered-1',
      result: 'Failed',
      bootIDBefore: before,
    });
    expect((await node.backend.status(deadline(10_000))).booted.image).toBe(image);
  });
});
