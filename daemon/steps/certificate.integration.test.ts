/** Certificates through steps of several kinds and both modes: who owns a path after each. */
import { readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { ConfigMaps, Events, Leases, Secrets } from '../../api/kubernetes.ts';
import { MachineConfigs } from '../../api/machine-config.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import {
  DEFAULT_LEASE_NAMESPACE,
  DEFAULT_NAMESPACE,
  imageLabels,
  KUBELET_CA_CONFIG_MAP,
  KUBELET_CA_KEY,
  NODE_PULL_SECRET,
  nodePaths,
  PULL_SECRET_KEY,
} from '../../api/names.ts';
import { kubeletCADigest, pullSecretVersion } from '../../api/node-certificates.ts';
import type { DigestedPullspec } from '../../api/references.ts';
import { encodeTransitionLabel } from '../../disruption/transitions.ts';
import { isAt, policies, render, standardSpec } from '../../test/fixtures/node-configs.ts';
import { patience } from '../../test/fixtures/patience.ts';
import { type DaemonUnderTest, HOLDER, NODE, startDaemon } from '../../test/fixtures/running-daemon.ts';
import { createTestNode, layerFile, noDirectoryNodes, type TestNode } from '../../test/fixtures/test-node.ts';
import { createAuthority } from '../../x509/certificate.ts';

const CA_FILE = '/etc/kubernetes/kubelet-ca.crt';
const POLICY = `sha256:${'a'.repeat(64)}`;
const where = { namespace: DEFAULT_NAMESPACE };
const read = (node: TestNode, file: string) => readFile(path.join(node.host.root, file), 'utf8');

async function createCA({ client }: DaemonUnderTest, name: string) {
  const { caPem } = createAuthority(name, new Date());
  const data = { [KUBELET_CA_KEY]: caPem };
  const metadata = { name: KUBELET_CA_CONFIG_MAP };
  await client.create(ConfigMaps, { apiVersion: 'v1', kind: 'ConfigMap', metadata, data }, where);
  return { caPem, kubeletCA: kubeletCADigest(data) };
}

const says = (reason: string) => (object: MachineConfigNode) =>
  (object.status?.conditions ?? []).some(
    (condition) => condition.type === 'CertificatesApplied' && condition.reason === reason,
  );

describe.skipIf(noDirectoryNodes !== undefined)(
  'certificates and the pull secret',
  { timeout: patience(120_000) },
  () => {
    test('reach a node that is told of no config, and are put back when they are replaced', async () => {
      await using node = await createTestNode();
      await using daemon = await startDaemon(node);
      const { caPem, kubeletCA } = await createCA(daemon, 'kubelet');
      const text = '{"auths":{"r.io":{"auth":"dG9wczNjcmV0OnB3"}}}';
      const made = await daemon.client.create(
        Secrets,
        {
          apiVersion: 'v1',
          kind: 'Secret',
          metadata: { name: NODE_PULL_SECRET },
          data: { [PULL_SECRET_KEY]: Buffer.from(text).toString('base64') },
        },
        where,
      );
      const pullSecret = pullSecretVersion(made.metadata);
      const policyDigest = await policies(daemon);
      await render(daemon, 'rendered-1', 'one\n');
      // No grant: a paused pool gives none.
      const spec = { ...standardSpec(policyDigest)('rendered-1'), certificates: { kubeletCA, pullSecret } };
      await daemon.want(spec);
      await daemon.until('both', ({ status }) => status?.certificates?.pullSecret === pullSecret);
      expect(await read(node, CA_FILE)).toBe(caPem);
      expect(await read(node, '/var/lib/kubelet/config.json')).toBe(text);
      expect((await stat(path.join(node.host.root, '/var/lib/kubelet/config.json'))).mode & 0o777).toBe(
        0o600,
      );
      await writeFile(path.join(node.host.root, CA_FILE), 'by hand');
      await daemon.restart();
      await daemon.until('the plan', ({ status }) => status?.plan?.config === 'rendered-1');
      expect(await read(node, CA_FILE)).toBe(caPem);
      const told = JSON.stringify([
        await daemon.client.list(Events, {}),
        await daemon.until('the end', says('Applied')),
      ]);
      expect(told).not.toContain('dG9wczNjcmV0');
    });

    test('leave a path to the config that has it, and take it again when none has', async () => {
      await using node = await createTestNode();
      await using daemon = await startDaemon(node);
      const { caPem, kubeletCA } = await createCA(daemon, 'kubelet');
      const policyDigest = await policies(daemon);
      await render(daemon, 'rendered-1', 'one\n');
      await daemon.client.create(MachineConfigs, owning('rendered-2', 'of the config\n'));
      const standard = standardSpec(policyDigest);
      await daemon.want({ ...standard('rendered-1', 'Disrupt'), certificates: { kubeletCA } });
      await daemon.until(
        'the first config',
        (object) => isAt('rendered-1')(object) && says('Applied')(object),
      );
      await daemon.want({ ...standard('rendered-2', 'Disrupt'), certificates: { kubeletCA } });
      const owned = await daemon.until(
        'the config that has the path',
        (object) => isAt('rendered-2')(object) && says('OwnedByMachineConfig')(object),
      );
      expect(owned.status?.certificates?.kubeletCA).toBeUndefined();
      expect(await read(node, CA_FILE)).toBe('of the config\n');
      await daemon.want({ ...standard('rendered-1', 'Disrupt'), certificates: { kubeletCA } });
      await daemon.until(
        'the first config again',
        (object) => isAt('rendered-1')(object) && says('Applied')(object),
      );
      expect(await read(node, CA_FILE)).toBe(caPem);
    });

    test('survive the way into layering, and leave a path to the image that has it, live and by reboot', async () => {
      await using node = await createTestNode();
      await using daemon = await startDaemon(node);
      const { caPem, kubeletCA } = await createCA(daemon, 'kubelet');
      const go = async (image: DigestedPullspec, config: string) => {
        const grant = { level: 'Disrupt', config, image, leaseHolder: HOLDER } as const;
        await daemon.want({
          configVersion: { desired: config },
          configImage: { desiredImage: image },
          imageSigningKeys: 'Disabled',
          policyDigest: POLICY,
          grant,
          certificates: { kubeletCA },
        });
      };
      const isThere = (config: string, reason: string) => (object: MachineConfigNode) =>
        isAt(config)(object) && says(reason)(object);
      await go(build(node, { config: 'rendered-1' }), 'rendered-1');
      await daemon.until('the first image', isThere('rendered-1', 'Applied'));
      expect(await read(node, CA_FILE)).toBe(caPem);

      const bootID = await node.host.bootID();
      await go(build(node, { config: 'rendered-2', from: 'rendered-1', content: 'live\n' }), 'rendered-2');
      await daemon.until('the image that has it', isThere('rendered-2', 'OwnedByMachineConfig'));
      expect(await read(node, CA_FILE)).toBe('live\n');
      await go(build(node, { config: 'rendered-3', from: 'rendered-2' }), 'rendered-3');
      await daemon.until('an image without it', isThere('rendered-3', 'Applied'));
      expect(await read(node, CA_FILE)).toBe(caPem);
      expect(await node.host.bootID()).toBe(bootID);

      await go(build(node, { config: 'rendered-4', content: 'booted\n' }), 'rendered-4');
      await daemon.until('the image that has it, booted', isThere('rendered-4', 'OwnedByMachineConfig'));
      expect(await read(node, CA_FILE)).toBe('booted\n');
      await go(build(node, { config: 'rendered-5' }), 'rendered-5');
      await daemon.until('an image without it, booted', isThere('rendered-5', 'Applied'));
      expect(await read(node, CA_FILE)).toBe(caPem);
    });

    test('have no service told while somebody else has the node, but lie there', async () => {
      await using node = await createTestNode();
      await using daemon = await startDaemon(node);
      const { caPem, kubeletCA } = await createCA(daemon, 'kubelet');
      const policyDigest = await policies(daemon, [
        { path: '/etc/kubernetes', actions: [{ type: 'Reload', reload: { serviceName: 'crio.service' } }] },
      ]);
      const lease = { namespace: DEFAULT_LEASE_NAMESPACE };
      const hold = (holderIdentity: string) =>
        daemon.client.patch(
          Leases,
          `node-${NODE}`,
          { type: 'merge', body: { spec: { holderIdentity } } },
          lease,
        );
      await hold('node-maintenance');
      await render(daemon, 'rendered-1', 'one\n');
      await daemon.want({ ...standardSpec(policyDigest)('rendered-1'), certificates: { kubeletCA } });
      await daemon.until('the obstacle', says('LeaseHeld'));
      expect(await read(node, CA_FILE)).toBe(caPem);
      await hold('');
      await daemon.restart();
      await daemon.until('the end', says('Applied'));
    });
  },
);

/**
 * An image as the builder makes it.
 *
 * @param from a config that nodes come from live; without it they reboot. @param content of the path, where it has it.
 */
function build(
  node: TestNode,
  { config, from, content }: { readonly config: string; readonly from?: string; readonly content?: string },
): DigestedPullspec {
  const transitions = from === undefined ? [] : [{ config: from, base: node.stock, actions: [], causes: [] }];
  const own =
    content === undefined
      ? []
      : [
          layerFile(CA_FILE, content),
          layerFile(nodePaths.imageConfig, JSON.stringify(owning(config, content))),
        ];
  return node.addImage([layerFile('/etc/image', `${config}\n`), ...own], {
    [imageLabels.renderedConfig]: config,
    [imageLabels.baseImage]: node.stock,
    [imageLabels.disruption]: encodeTransitionLabel({ version: 1, policyDigest: POLICY, transitions }),
  });
}

function owning(name: string, content: string) {
  const files = [{ path: CA_FILE, contents: { source: `data:,${encodeURIComponent(content)}` } }];
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name },
    spec: { config: { ignition: { version: '3.4.0' }, storage: { files } } },
  };
}
