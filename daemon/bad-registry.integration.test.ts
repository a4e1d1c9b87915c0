/**
 * A whole daemon against a registry on loopback that answers wrongly: the node has to stay as it was until the image
 * is whole.
 */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { MachineConfigNode, MachineConfigNodeSpec } from '../api/machine-config-node.ts';
import { imageLabels } from '../api/names.ts';
import { type DigestedPullspec, parseDigestedPullspec } from '../api/references.ts';
import { parseManifest } from '../image/manifest.ts';
import { parseReference } from '../image/reference.ts';
import { createRegistryClient, type RegistryClient } from '../image/registry/registry-client.ts';
import { CHRONY, isAt } from '../test/fixtures/node-configs.ts';
import { deadline, patience } from '../test/fixtures/patience.ts';
import {
  type Fault,
  type RegistryProxy,
  startRegistryProxy,
} from '../test/fixtures/registry/registry-proxy.ts';
import { HOLDER, startDaemon } from '../test/fixtures/running-daemon.ts';
import { createTestNode, noDirectoryNodes, type TestNode } from '../test/fixtures/test-node.ts';
import { type DockerRegistry, startDockerRegistry } from '../workshop/sandbox/docker-registry.ts';
import { directoryNodeLayout } from '../workshop/sandbox/node/directory-host.ts';
import { directoryNode } from '../workshop/sandbox/node/directory-node.ts';
import { stockImage } from '../workshop/sandbox/node/stock-image.ts';
import { pushImage } from '../workshop/sandbox/registry.ts';
import { stateDirectory } from './os/ostree/image-record.ts';
import { registrySource } from './os/ostree/registry-source.ts';

const signal = deadline(600_000);

/** Of which part of an image, how, and what the status has to say of it. */
const faults: readonly (readonly [part: 'layer' | 'config' | 'manifest', Fault, says: RegExp])[] = [
  ['layer', 'stalls', /the connection broke after \d+ of \d+ bytes: no data received for [\d.]+ s/],
  ['layer', 'other bytes', /sha256:[0-9a-f]{64}: the received content has the digest sha256:[0-9a-f]{64}/],
  ['layer', 'HTTP 503', /503/],
  ['config', 'other bytes', /sha256:[0-9a-f]{64}/],
  ['manifest', 'other bytes', /sha256:[0-9a-f]{64}/],
];

let dir: string;
let registry: DockerRegistry;
let faulty: RegistryProxy;
let client: RegistryClient;

/** @returns the image as the registry that misbehaves has it, and the digests of its parts. */
async function push(config: string, base: DigestedPullspec, content: string) {
  const chrony = { type: 'file', path: CHRONY, mode: 0o644, uid: 0, gid: 0 } as const;
  const entries = [
    ...stockImage().filter((entry) => entry.path !== CHRONY),
    { ...chrony, content: Buffer.from(content) },
  ];
  const labels = { [imageLabels.renderedConfig]: config, [imageLabels.baseImage]: base };
  const image = await pushImage({ host: registry.host, client }, 'os/worker', { entries, labels }, signal);
  const { bytes, digest } = await client.getManifest(parseReference(image), signal);
  const parsed = parseManifest(bytes, image);
  if (parsed.kind !== 'image') throw new Error(`${image} is an index`);
  const { manifest } = parsed;
  const layer = manifest.layers[0]?.digest ?? '';
  return {
    image: parseDigestedPullspec(image.replace(registry.host, faulty.host)),
    digests: { layer, config: manifest.config.digest, manifest: digest },
  };
}

const layered = (config: string, image: DigestedPullspec): Partial<MachineConfigNodeSpec> => ({
  configVersion: { desired: config },
  configImage: { desiredImage: image },
  imageSigningKeys: 'Disabled',
  grant: { level: 'Disrupt', config, image, leaseHolder: HOLDER },
});

const conditionOf = ({ status }: MachineConfigNode, type: string) =>
  status?.conditions?.find((condition) => condition.type === type);

/** What an image that did not come whole must not change. */
async function lookAt(node: TestNode) {
  const { stdout } = await execa('ostree', ['refs', '--list', repositoryOf(node), 'shale']);
  const { booted, staged, rollback } = await node.backend.status(signal);
  return {
    refs: stdout.split('\n').toSorted(),
    images: [booted.image, staged?.image, rollback?.image],
    chrony: await readFile(path.join(node.host.root, CHRONY), 'utf8'),
    bootID: await node.host.bootID(),
  };
}

function repositoryOf({ dir: node }: TestNode): string {
  return `--repo=${path.join(directoryNodeLayout(node).sysroot, 'ostree/repo')}`;
}

describe.skipIf(noDirectoryNodes !== undefined)(
  'an image of a registry',
  { timeout: patience(300_000) },
  () => {
    beforeAll(async () => {
      dir = await mkdtemp(path.join(tmpdir(), 'shale-bad-registry-'));
      registry = await startDockerRegistry({ dir });
      faulty = await startRegistryProxy(registry.host);
      client = createRegistryClient({ plainHttp: new Set([registry.host]) });
    }, patience(60_000));
    afterAll(async () => {
      await faulty?.stop();
      await registry?.stop();
      await rm(dir, { recursive: true, force: true });
    });

    test.each(faults)(
      'whose %s is answered so: %s, leaves the node as it was, and is taken once it is whole',
      async (part, fault, says) => {
        await using node = await createTestNode();
        const plainHttp = new Set([faulty.host]);
        const source = registrySource({ root: node.host.root, plainHttp, silenceMs: patience(200) });
        const ports = directoryNode(node.dir, source);
        await using daemon = await startDaemon({ ...ports, dir: node.dir, boot: node.boot });
        const before = await lookAt(node);
        const content = `${part} ${fault}\n`;
        const { image, digests } = await push(`rendered-${part}`, node.stock, content);
        faulty.decide((line) => {
          const isPart = line.startsWith('GET ') && line.endsWith(digests[part]);
          return isPart ? fault : 'none';
        });
        await daemon.want(layered(`rendered-${part}`, image));
        const { status } = await daemon.until('why it can not be prepared', (object) =>
          says.test(conditionOf(object, 'UpdatePrepared')?.message ?? ''),
        );
        expect(status?.conditions).toContainEqual(
          expect.objectContaining({ type: 'UpdatePrepared', status: 'False', reason: 'PrepareFailed' }),
        );
        expect(status?.configVersion).toEqual({ current: '', desired: `rendered-${part}` });
        expect(faulty.faults).toBeGreaterThan(0);
        expect(status?.plan).toBeUndefined();
        expect(await lookAt(node)).toEqual(before);
        faulty.decide(() => 'none');
        const done = await daemon.until('the image', isAt(`rendered-${part}`));
        expect(done.status?.configImage?.currentImage).toBe(image);
        expect(await readFile(path.join(node.host.root, CHRONY), 'utf8')).toBe(content);
        expect(await readdir(stateDirectory(directoryNodeLayout(node.dir).sysroot))).not.toContain('tmp');
        await execa('ostree', ['fsck', '--quiet', repositoryOf(node)]);
      },
    );
  },
);
