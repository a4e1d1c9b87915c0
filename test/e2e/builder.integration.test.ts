/** Operator, builder and registry together: a build from the MachineOSBuild to the image's labels. */
import { mkdtemp, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Secrets } from '../../api/kubernetes.ts';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { MachineConfigurations } from '../../api/machine-configuration.ts';
import { MachineOSBuilds } from '../../api/machine-os-build.ts';
import { imageLabels, MACHINE_CONFIGURATION } from '../../api/names.ts';
import type { NewObject } from '../../api/object.ts';
import { conditionIsTrue } from '../../cluster/update-object.ts';
import { parseTransitionLabel } from '../../disruption/transitions.ts';
import { describeImage } from '../../image/append.ts';
import { pushAppended } from '../../image/push-image.ts';
import { parseReference } from '../../image/reference.ts';
import { startDockerRegistry } from '../../workshop/sandbox/docker-registry.ts';
import { shale } from '../cli/shale-process.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { pushBaseImage } from '../fixtures/registry/base-image.ts';
import { startScriptedRegistry } from '../fixtures/registry/scripted-registry.ts';
import { type BuilderUnderTest, has, newMachineConfig, startBuilderUnderTest } from './builder-under-test.ts';
import { NAMESPACE, seen } from './cluster-under-test.ts';

let under: BuilderUnderTest;
let built: Promise<void>;
const log = pino({ level: 'silent' });
const stop = new AbortController();
const signal = deadline(300_000);

beforeAll(async () => {
  under = await startBuilderUnderTest(signal);
  built = under.runBuilder(stop.signal, { log });
}, patience(60_000));
afterAll(async () => {
  stop.abort();
  await built;
  await under.stop();
});

async function describeLabels(image: string): Promise<Readonly<Record<string, string>>> {
  const { config } = await describeImage(under.registryClient(), parseReference(image), 'amd64', signal);
  return config.config?.Labels ?? {};
}

describe('a build', () => {
  test('ends in an image by digest, whose label says the way from the image before', async () => {
    await under.createSecret('push', under.auths('secret'));
    await under.cluster.client.create(
      MachineConfigurations,
      {
        apiVersion: 'operator.openshift.io/v1',
        kind: 'MachineConfiguration',
        metadata: { name: MACHINE_CONFIGURATION },
        spec: {
          logLevel: 'Debug',
          nodeDisruptionPolicy: {
            files: [
              {
                path: '/etc/chrony.conf',
                actions: [{ type: 'Restart', restart: { serviceName: 'chronyd.service' } }],
              },
            ],
          },
        },
      },
      { signal },
    );
    await under.layerPool('first', { secret: 'push' });
    const one = await under.buildOf('first', has('Succeeded'));
    expect(one.status?.digestedImagePushSpec).toMatch(/\/os\/first@sha256:[0-9a-f]{64}$/);
    expect(one.status?.baseImage).toBe(under.base);
    expect(log.level).toBe('debug');

    const rendered = await under.changeFile('first', 'server b');
    const config = await under.configOf(
      'first',
      ({ status }) =>
        status?.currentImagePullSpec !== undefined &&
        status.currentImagePullSpec !== one.status?.digestedImagePushSpec,
    );
    const labels = await describeLabels(config.status?.currentImagePullSpec ?? '');
    expect(labels[imageLabels.renderedConfig]).toBe(rendered);
    const parsed = parseTransitionLabel(labels[imageLabels.disruption]);
    expect(parsed.ok && parsed.label.transitions.map(({ config: from, actions }) => [from, actions])).toEqual(
      [[one.spec.machineConfig.name, [{ type: 'Restart', service: 'chronyd.service' }]]],
    );
  });

  test('of a pool without nodes is published under the stable tag, and so is the next one', async () => {
    await under.createSecret('push-empty', under.auths('secret'));
    await under.layerPool('empty', { secret: 'push-empty' });
    const tag = `${under.registry.host}/os/empty:current`;
    const publishes = async (isOther: (image: string) => boolean) => {
      const { status } = await under.configOf('empty', ({ status: seenStatus }) => {
        const image = seenStatus?.publishedImage?.image;
        return image !== undefined && isOther(image);
      });
      expect(status?.publishedImage?.tag).toBe(tag);
      const { digest } = await under.registryClient().getManifest(parseReference(tag), signal);
      expect(status?.publishedImage?.image).toBe(`${under.registry.host}/os/empty@${digest}`);
      return status?.publishedImage?.image ?? '';
    };
    const one = await publishes(() => true);
    const { status } = await under.cluster.client.get(MachineConfigPools, 'empty', { signal });
    expect(status?.bootImage).toEqual({ image: one, proof: 'None' });
    await under.changeFile('empty', 'server b');
    await publishes((image) => image !== one);
  });

  test('of a pool whose rendered config has a name that no label can hold ends in an image too', async () => {
    await under.createSecret('push-long', under.auths('secret'));
    const pool = 'accelerated-workers-of-region-one';
    await under.layerPool(pool, { secret: 'push-long' });
    const build = await under.buildOf(pool, has('Succeeded'));
    expect(build.spec.machineConfig.name.length).toBeGreaterThan(63);
    expect(Object.values(build.metadata.labels ?? {})).toEqual([pool, pool]);
  });

  test('makes the image that shale build makes of the same objects outside of the cluster', async () => {
    await under.layerPool('twin', { secret: 'push' });
    const inside = await under.buildOf('twin', has('Succeeded'));
    const { client } = under.cluster;
    const objects = await Promise.all([
      client.get(MachineConfigPools, 'twin', { signal }),
      client.get(MachineConfigs, '50-twin', { signal }),
      client.get(MachineConfigurations, MACHINE_CONFIGURATION, { signal }),
    ]);
    const files = path.join(under.dir, 'twin.json');
    await writeFile(files, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }));
    const authfile = path.join(under.dir, 'auth.json');
    await writeFile(authfile, under.auths('secret'));
    const { host } = under.registry;
    const outside = await shale([
      ...['build', '--pool', 'twin', '-f', files, '--base', under.base, '--push', `${host}/os/twin:outside`],
      ...['--plain-http', host, '--authfile', authfile, '--architecture', 'amd64'],
    ]);
    expect(outside.stderr).toContain('one layer of');
    expect(outside.stdout).toBe(inside.status?.digestedImagePushSpec);
  });

  test('without the right credentials fails at once, says so, and works when they are mended', async () => {
    await under.createSecret('wrong', under.auths('guess'));
    await under.layerPool('locked', { secret: 'wrong' });
    const failed = await under.buildOf('locked', has('Failed'));
    const condition = failed.status?.conditions?.find(({ type }) => type === 'Failed');
    expect(condition?.reason).toBe('RegistryRefusedCredentials');
    expect(JSON.stringify(failed)).not.toContain('guess');
    const data = { '.dockerconfigjson': Buffer.from(under.auths('secret')).toString('base64') };
    await under.cluster.client.patch(
      Secrets,
      'wrong',
      { type: 'merge', body: { data } },
      { namespace: NAMESPACE, signal },
    );
    await under.changeFile('locked', 'server c');
    await under.configOf('locked', ({ status }) => status?.currentImagePullSpec !== undefined);
  });

  test('to a registry that is down is tried again and says why', async () => {
    const later = await startDockerRegistry({ dir: await mkdtemp(path.join(under.dir, 'later-')) });
    await later.stop();
    await under.layerPool('patient', { secret: 'push', pushSpec: `${later.host}/os/patient:latest` });
    const retrying = await under.buildOf('patient', ({ status }) =>
      (status?.conditions ?? []).some(({ message }) => message?.includes(later.host)),
    );
    expect(has('Succeeded')(retrying)).toBe(false);
  });

  test('to a registry that answers garbage fails and says what came', async () => {
    const host = await startScriptedRegistry((_, response) =>
      response.end('<html>welcome to the captive portal</html>'),
    );
    under.plainHttp.add(host);
    await under.layerPool('portal', { secret: 'push', pushSpec: `${host}/os/portal:latest` });
    const seenBuild = await under.buildOf('portal', ({ status }) =>
      (status?.conditions ?? []).some(({ message }) => message?.includes(host)),
    );
    expect(has('Succeeded')(seenBuild)).toBe(false);
  });

  test('that a restarted builder finds done is not done again', async () => {
    const before = await under.buildOf('first', has('Succeeded'));
    const restarted = new AbortController();
    const again = under.runBuilder(restarted.signal);
    await under.changeFile('first', 'server d');
    await under.configOf(
      'first',
      ({ status }) =>
        status?.machineOSBuild?.name !== before.metadata.name && status?.machineOSBuild !== undefined,
    );
    restarted.abort();
    await again;
    const kept = await under.cluster.client.get(MachineOSBuilds, before.metadata.name, { signal });
    expect(kept.metadata.uid).toBe(before.metadata.uid);
    expect(kept.metadata.resourceVersion).toBe(before.metadata.resourceVersion);
  });
});

describe('a MachineConfig that is invalid', () => {
  const file = (at: string, source = 'data:,x') => ({ path: at, contents: { source } });
  const ignition = (version: string, ...files: { path: string }[]): NewObject<MachineConfig> =>
    newMachineConfig('first', '60-bad', { config: { ignition: { version }, storage: { files } } });

  test.each([
    ['a relative path', ignition('3.4.0', file('etc/relative')), 'spec.config.storage.files[0].path'],
    [
      'a path that escapes',
      ignition('3.4.0', file('/etc/../../root/x')),
      'spec.config.storage.files[0].path',
    ],
    ['an unknown version of Ignition', ignition('3.9.0', file('/etc/a')), 'spec.config.ignition.version'],
  ])('by %s is refused when it is applied', async (_, bad, where) => {
    await expect(under.cluster.client.create(MachineConfigs, bad, { signal })).rejects.toThrow(where);
  });

  test.each([
    ['the same path twice', ignition('3.4.0', file('/etc/a'), file('/etc/a')), '$.storage.files[1]'],
    ['a data URL that is none', ignition('3.4.0', file('/etc/a', 'data:;base64,%%%')), 'storage.files'],
  ])('by %s degrades its pool by name and reason, and changes nothing', async (_, bad, reason) => {
    const { client } = under.cluster;
    const before = (await client.get(MachineConfigPools, 'first', { signal })).spec.configuration?.name;
    await client.create(MachineConfigs, bad, { signal });
    const degraded = ({ status }: { status?: { conditions?: Parameters<typeof conditionIsTrue>[0] } }) =>
      conditionIsTrue(status?.conditions, 'RenderDegraded');
    const pool = await seen(client, MachineConfigPools, 'first', degraded);
    const condition = pool.status?.conditions?.find(({ type }) => type === 'RenderDegraded');
    expect(condition?.message).toContain('60-bad');
    expect(condition?.message).toContain(reason);
    expect(pool.spec.configuration?.name).toBe(before);
    await client.delete(MachineConfigs, '60-bad', { signal });
    await seen(client, MachineConfigPools, 'first', (object) => !degraded(object));
  });
});

describe('a base image by tag', () => {
  test('is looked at again, and another digest is another build', async () => {
    await under.createSecret('moving', under.auths('secret'));
    const tag = `${under.registry.host}/os/moving-stock:1`;
    const before = await pushBaseImage(under.registryClient(), tag, signal);
    await under.layerPool('moving', { secret: 'moving', base: tag });
    const one = await under.buildOf('moving', has('Succeeded'));
    expect(one.status?.baseImage).toBe(`${under.registry.host}/os/moving-stock@${before}`);

    const at = parseReference(tag);
    const { digest: after } = await pushAppended(
      under.registryClient(),
      {
        base: at,
        description: await describeImage(under.registryClient(), at, 'amd64', signal),
        target: at,
        layer: undefined,
        options: { labels: { moved: 'yes' }, created: '1970-01-01T00:00:00Z', comment: 'moved' },
      },
      signal,
    );
    await under.configOf('moving', ({ status }) => status?.machineOSBuild?.name !== one.metadata.name);
    const other = await under.buildOf('moving', has('Succeeded'));
    expect(other.status?.baseImage).toBe(`${under.registry.host}/os/moving-stock@${after}`);
  });
});
