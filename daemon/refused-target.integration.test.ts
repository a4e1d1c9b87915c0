/** A whole daemon with a target that its host cannot take: refused before the first write. */
import { readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { MachineConfigs } from '../api/machine-config.ts';
import { PREPARE_REFUSED } from '../api/machine-config-node.ts';
import { CHRONY, isAt, policies, render, standardSpec } from '../test/fixtures/node-configs.ts';
import { patience } from '../test/fixtures/patience.ts';
import { startDaemon } from '../test/fixtures/running-daemon.ts';
import { createTestNode, noDirectoryNodes } from '../test/fixtures/test-node.ts';

describe.skipIf(noDirectoryNodes !== undefined)('a target that asks for packages on a host of ostree', () => {
  test('is refused before anything is done, in words that say what to change', {
    timeout: patience(120_000),
  }, async () => {
    await using node = await createTestNode();
    await using daemon = await startDaemon(node);
    const spec = standardSpec(await policies(daemon));
    await render(daemon, 'rendered-1', 'one\n');
    await daemon.want(spec('rendered-1', 'Disrupt'));
    await daemon.until('the first config', isAt('rendered-1'));
    const bootID = await node.host.bootID();
    await daemon.client.create(MachineConfigs, {
      apiVersion: 'machineconfiguration.openshift.io/v1',
      kind: 'MachineConfig',
      metadata: { name: 'rendered-2' },
      spec: { config: { ignition: { version: '3.4.0' } }, extensions: ['usbguard'] },
    });
    await daemon.want(spec('rendered-2', 'Disrupt'));
    const refused = await daemon.until('the refusal', ({ status }) =>
      (status?.conditions ?? []).some(({ reason }) => reason === PREPARE_REFUSED),
    );
    const { conditions, osBackend } = refused.status ?? {};
    expect(osBackend).toMatchObject({ name: 'ostree', installsPackages: false });
    expect(conditions?.find(({ type }) => type === 'UpdatePrepared')?.message).toMatch(
      /^rendered-2: extensions usbguard: ostree keeps .* expected on-cluster layering, or a host with rpm-ostree$/,
    );
    expect(await node.host.bootID()).toBe(bootID);
    expect(await readFile(`${node.host.root}${CHRONY}`, 'utf8')).toBe('one\n');
    await render(daemon, 'rendered-3', 'three\n');
    await daemon.want(spec('rendered-3', 'Live'));
    await daemon.until('a config without packages', isAt('rendered-3'));
  });
});
