import { generateKeyPairSync } from 'node:crypto';
import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import { signingKeyName } from '../../api/image-signing.ts';
import { ConfigMaps, Secrets } from '../../api/kubernetes.ts';
import { MachineConfigs } from '../../api/machine-config.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { MachineConfigurations } from '../../api/machine-configuration.ts';
import { MachineOSBuilds } from '../../api/machine-os-build.ts';
import { MachineOSConfigs } from '../../api/machine-os-config.ts';
import { MemoryCluster, SteppedInformer } from '../../test/fixtures/fleet/memory-cluster.ts';
import {
  aBuild,
  aMachineConfiguration,
  aMachineOSConfig,
  aRenderedConfig,
} from '../../test/fixtures/objects.ts';
import { deadline } from '../../test/fixtures/patience.ts';
import { BuildFailure } from '../build-failure.ts';
import { engineParts } from '../engine/engine-flags.ts';
import { noEngine } from '../engine/engines.ts';
import { untraced } from './build-trace.ts';
import { ImageMaker } from './make-image.ts';

describe('the key that images are signed with', () => {
  const [first, second] = [newKey(), newKey()];

  /** @returns why a build ends that signs with the first key: no registry answers, once it may sign. */
  async function reasonWith(
    published: readonly string[] | undefined,
    inForce: string | undefined = 'sha256:p',
    rendered = aRenderedConfig('rendered-worker-1'),
  ): Promise<string> {
    const cluster = new MemoryCluster();
    const place = { namespace: 'shale-system' };
    const data = { 'cosign.key': Buffer.from(first.pem).toString('base64') };
    cluster.put(Secrets, { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'signing', ...place }, data });
    if (published !== undefined) {
      cluster.put(ConfigMaps, {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'image-signing-keys', ...place },
        data: Object.fromEntries(published.map((pem) => [signingKeyName(pem), pem])),
      });
    }
    const build = cluster.put(
      MachineOSBuilds,
      aBuild('worker-1', 'rendered-worker-1', { policyDigest: 'sha256:p' }),
    );
    cluster.put(MachineConfigurations, aMachineConfiguration(inForce));
    const caches = {
      machineOSConfigs: new SteppedInformer(cluster, MachineOSConfigs),
      builds: new SteppedInformer(cluster, MachineOSBuilds),
      pools: new SteppedInformer(cluster, MachineConfigPools),
      machineConfigs: new SteppedInformer(cluster, MachineConfigs),
      machineConfigurations: new SteppedInformer(cluster, MachineConfigurations),
      nodes: new SteppedInformer(cluster, MachineConfigNodes),
      signingKeys: new SteppedInformer(cluster, ConfigMaps),
    };
    for (const cache of Object.values(caches)) cache.catchUp();
    const maker = new ImageMaker({
      client: cluster.client(),
      ...place,
      plainHttp: new Set(),
      caches,
      version: '0',
      created: '1970-01-01T00:00:00Z',
      signingKeySecret: 'signing',
      engine: engineParts({ engineMinutes: 1, engineGibibytes: 1, engineWorkDir: '/nowhere' }, noEngine(), 1),
      log: pino({ enabled: false }),
    });
    const job = {
      build,
      machineOSConfig: aMachineOSConfig('worker'),
      rendered,
      baseImage: `127.0.0.1:1/os/base@sha256:${'a'.repeat(64)}`,
      architectures: ['amd64'],
    };
    const failure = await maker
      .make(job, untraced, deadline(20_000))
      .then(() => undefined)
      .catch((error: unknown) => error);
    if (!(failure instanceof BuildFailure)) throw failure;
    expect(failure.temporary).toBe(true);
    return failure.reason;
  }

  test.each([
    ['is not published yet', [second.publicKey], 'SigningKeyUnpublished'],
    ['can not be published yet', undefined, 'SigningKeyUnpublished'],
    ['is published', [first.publicKey], 'RegistryUnavailable'],
    ['was replaced and is still published', [first.publicKey, second.publicKey], 'RegistryUnavailable'],
  ])('signs only what nodes accept: it %s', async (_which, published, reason) => {
    expect(await reasonWith(published)).toBe(reason);
  });

  test('nothing is built of a config whose name is the digest of another', async () => {
    const forged = aRenderedConfig(`rendered-worker-${'0'.repeat(32)}`);
    expect(await reasonWith([first.publicKey], undefined, forged)).toBe('InvalidConfig');
  });

  test('nothing is built under other policies than those that its label would name', async () => {
    expect(await reasonWith([first.publicKey], 'sha256:q')).toBe('PoliciesChanged');
  });
});

function newKey() {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return {
    pem: String(privateKey.export({ type: 'pkcs8', format: 'pem' })),
    publicKey: String(publicKey.export({ type: 'spki', format: 'pem' })),
  };
}
