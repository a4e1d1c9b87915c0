/**
 * A whole daemon on a real root that is broken: a read-only /etc, a full disk, a clock that jumps. The steps alone do
 * not show that it goes on afterwards.
 */
import { mkdir, readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { execa } from 'execa';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { DisruptionAction } from '../api/disruption-action.ts';
import { ConfigMaps } from '../api/kubernetes.ts';
import type { Grant, MachineConfigNode } from '../api/machine-config-node.ts';
import { DEFAULT_NAMESPACE, imageLabels, KUBELET_CA_CONFIG_MAP, KUBELET_CA_KEY } from '../api/names.ts';
import { kubeletCADigest } from '../api/node-certificates.ts';
import type { DigestedPullspec } from '../api/references.ts';
import { conditionIsTrue } from '../cluster/update-object.ts';
import { encodeTransitionLabel } from '../disruption/transitions.ts';
import { CHRONY, isAt, policies, render, standardSpec } from '../test/fixtures/node-configs.ts';
import { patience } from '../test/fixtures/patience.ts';
import { HOLDER, startDaemon } from '../test/fixtures/running-daemon.ts';
import { fill } from '../test/fixtures/small-disk.ts';
import { createTestNode, layerFile, noDirectoryNodes, type TestNode } from '../test/fixtures/test-node.ts';
import { directoryNodeLayout } from '../workshop/sandbox/node/directory-host.ts';
import { readServiceRecords } from '../workshop/sandbox/node/service-recorder.ts';
import { createAuthority } from '../x509/certificate.ts';
import { defaultCertificatePaths } from './host/certificates/certificate-files.ts';

const read = (node: TestNode, file: string) => readFile(path.join(node.host.root, file), 'utf8');
const POLICY = `sha256:${'a'.repeat(64)}`;
const RESTART: DisruptionAction = { type: 'Restart', service: 'chronyd.service' };
const YEAR_MS = 365 * 24 * 3_600_000;

describe.skipIf(noDirectoryNodes !== undefined)('a host', { timeout: patience(120_000) }, () => {
  afterEach(() => void vi.useRealTimers());

  test('with a read-only /etc stays as it was, says so, and is updated as soon as it can be written to', async () => {
    await using node = await createTestNode();
    await using daemon = await startDaemon(node);
    const standard = standardSpec(await policies(daemon));
    for (const [name, text] of Object.entries({ 'rendered-1': 'one\n', 'rendered-2': 'two\n' })) {
      await render(daemon, name, text);
    }
    await daemon.want(standard('rendered-1', 'Disrupt'));
    await daemon.until('the first config', isAt('rendered-1'));
    const etc = path.join(node.host.root, 'etc');
    await execa('mount', ['--bind', etc, etc]);
    try {
      await execa('mount', ['-o', 'remount,ro,bind', etc]);
      await daemon.want(standard('rendered-2', 'Live'));
      const { status } = await daemon.until('why it can not be updated', ({ status }) =>
        conditionIsTrue(status?.conditions, 'NodeDegraded'),
      );
      expect(JSON.stringify(status?.conditions)).toContain('EROFS');
      expect(status?.configVersion?.current).toBe('rendered-1');
      expect(await read(node, CHRONY)).toBe('one\n');
    } finally {
      await execa('umount', [etc]);
    }
    await daemon.until('the second config', isAt('rendered-2'));
    expect(await read(node, CHRONY)).toBe('two\n');
  });

  test('with a read-only /etc takes no image live: it asks for a reboot, says why, and runs on as it was', async () => {
    await using node = await createTestNode();
    await using daemon = await startDaemon(node);
    const build = (config: string, content: string, from?: string) =>
      node.addImage([layerFile(CHRONY, content)], {
        [imageLabels.renderedConfig]: config,
        [imageLabels.baseImage]: node.stock,
        [imageLabels.disruption]: encodeTransitionLabel({
          version: 1,
          policyDigest: POLICY,
          transitions:
            from === undefined ? [] : [{ config: from, base: node.stock, actions: [RESTART], causes: [] }],
        }),
      });
    const layered = (config: string, image: DigestedPullspec, level: Grant['level']) =>
      daemon.want({
        configVersion: { desired: config },
        configImage: { desiredImage: image },
        imageSigningKeys: 'Disabled',
        policyDigest: POLICY,
        grant: { level, config, image, leaseHolder: HOLDER },
      });
    await layered('rendered-1', build('rendered-1', 'one\n'), 'Disrupt');
    await daemon.until('the first image', isAt('rendered-1'));
    const bootID = await node.host.bootID();
    const second = build('rendered-2', 'two\n', 'rendered-1');
    const etc = path.join(node.host.root, 'etc');
    await execa('mount', ['--bind', etc, etc]);
    try {
      await execa('mount', ['-o', 'remount,ro,bind', etc]);
      await layered('rendered-2', second, 'Live');
      const { status } = await daemon.until('why it takes a reboot', ({ status }) =>
        /could not be applied live/.test(status?.plan?.source ?? ''),
      );
      expect(status?.plan?.source).toContain('EROFS');
      expect(status?.plan?.actions).toEqual([{ type: 'Reboot' }]);
      expect(status?.configVersion?.current).toBe('rendered-1');
      expect(await read(node, CHRONY)).toBe('one\n');
      expect(await readServiceRecords(directoryNodeLayout(node.dir))).not.toContainEqual(
        expect.objectContaining({ action: 'restart' }),
      );
      expect(await node.host.bootID()).toBe(bootID);
    } finally {
      await execa('umount', [etc]);
    }
    await layered('rendered-2', second, 'Disrupt');
    await daemon.until('the second image', isAt('rendered-2'));
    expect(await read(node, CHRONY)).toBe('two\n');
    expect(await node.host.bootID()).not.toBe(bootID);
  });

  test('whose disk is full keeps its certificates, says so, and has the new ones as soon as there is room', async () => {
    await using node = await createTestNode();
    const directory = path.join(node.host.root, path.dirname(defaultCertificatePaths.kubeletCA));
    await mkdir(directory, { recursive: true });
    await execa('mount', ['-t', 'tmpfs', '-o', 'size=256k', 'tmpfs', directory]);
    await using stack = new AsyncDisposableStack();
    stack.defer(async () => void (await execa('umount', [directory])));
    await using daemon = await startDaemon(node, { postponedMs: 250 });
    const where = { namespace: DEFAULT_NAMESPACE };
    const policyDigest = await policies(daemon);
    await render(daemon, 'rendered-1', 'one\n');
    const file = path.join(node.host.root, defaultCertificatePaths.kubeletCA);
    const [old, renewed] = ['old', 'renewed'].map((name) => ({
      [KUBELET_CA_KEY]: createAuthority(name, new Date()).caPem,
    }));
    if (old === undefined || renewed === undefined) throw new Error('two are made');
    const wantCA = async (data: Readonly<Record<string, string>>) => {
      const kubeletCA = kubeletCADigest(data);
      await daemon.want({ ...standardSpec(policyDigest)('rendered-1', 'Live'), certificates: { kubeletCA } });
      return ({ status }: MachineConfigNode) => status?.certificates?.kubeletCA === kubeletCA;
    };
    const made = await daemon.client.create(
      ConfigMaps,
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: KUBELET_CA_CONFIG_MAP }, data: old },
      where,
    );
    await daemon.until('the first certificates', await wantCA(old));
    const empty = await fill(directory);
    await daemon.client.replace(ConfigMaps, { ...made, data: renewed }, where);
    const hasRenewed = await wantCA(renewed);
    const { status } = await daemon.until('why they could not be had', ({ status }) =>
      JSON.stringify(status?.conditions).includes('ENOSPC'),
    );
    expect(status?.conditions).toContainEqual(
      expect.objectContaining({ type: 'CertificatesApplied', status: 'False', reason: 'NotApplied' }),
    );
    expect(status?.conditions?.find(({ type }) => type === 'NodeDegraded')?.status).not.toBe('True');
    expect(await readFile(file, 'utf8')).toBe(old[KUBELET_CA_KEY]);
    expect((await readdir(directory)).toSorted()).toEqual(['filler', path.basename(file)].toSorted());
    await empty();
    await daemon.until('the new certificates', hasRenewed);
    expect(await readFile(file, 'utf8')).toBe(renewed[KUBELET_CA_KEY]);
  });

  test('whose clock jumps by years, there and back, goes on with its updates', async () => {
    await using node = await createTestNode();
    await using daemon = await startDaemon(node, { healthLimits: { checksMs: 30_000, kubeletMs: 1_000 } });
    const standard = standardSpec(await policies(daemon));
    const now = Date.now();
    vi.useFakeTimers({ toFake: ['Date'] });
    const bootID = await node.host.bootID();
    for (const [index, jump] of [0, 20 * YEAR_MS, -30 * YEAR_MS, 0].entries()) {
      vi.setSystemTime(now + jump);
      const name = `rendered-${index}`;
      await render(daemon, name, `${name}\n`, index === 2 ? ['quiet'] : []);
      await daemon.want(standard(name, 'Disrupt'));
      // In the middle of the update, as a time server does it to a host whose battery is empty.
      vi.setSystemTime(now - jump);
      const { status } = await daemon.until(name, isAt(name));
      expect(status?.lastUpdate?.result).toBe('Succeeded');
      expect(await read(node, CHRONY)).toBe(`${name}\n`);
    }
    expect(await node.host.bootID()).not.toBe(bootID);
  });
});
