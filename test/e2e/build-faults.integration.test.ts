/** What goes wrong around a build: each ends in a MachineOSBuild that says so, and the next build works. */
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { Secrets } from '../../api/kubernetes.ts';
import { type MachineOSBuild, MachineOSBuilds } from '../../api/machine-os-build.ts';
import { MachineOSConfigs } from '../../api/machine-os-config.ts';
import { annotations } from '../../api/names.ts';
import { describeImage } from '../../image/append.ts';
import { pushIndex } from '../../image/image-index.ts';
import { readLayer } from '../../image/layer/read-layer.ts';
import { parseReference } from '../../image/reference.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { pushBaseImage } from '../fixtures/registry/base-image.ts';
import { type Fault, type RegistryProxy, startRegistryProxy } from '../fixtures/registry/registry-proxy.ts';
import { type BuilderUnderTest, has, startBuilderUnderTest } from './builder-under-test.ts';
import { NAMESPACE } from './cluster-under-test.ts';

let under: BuilderUnderTest;
let proxy: RegistryProxy;
let built: Promise<void>;
const stop = new AbortController();
const signal = deadline(300_000);

beforeAll(async () => {
  under = await startBuilderUnderTest(signal);
  proxy = await startRegistryProxy(under.registry.host);
  under.plainHttp.add(proxy.host);
  await under.createSecret('both', under.auths('secret', proxy.host));
  built = under.runBuilder(stop.signal);
}, patience(60_000));
beforeEach(() => proxy.decide(() => 'none'));
afterAll(async () => {
  stop.abort();
  await built;
  await proxy.stop();
  await under.stop();
});

const messages = ({ status }: MachineOSBuild) =>
  (status?.conditions ?? []).map(({ message }) => message ?? '').join('\n');

/** Reads every byte of an image's own layer: it is whole. */
async function readWhole(image: string | undefined): Promise<void> {
  const reference = parseReference(image ?? '');
  const client = under.registryClient();
  const { manifest, config } = await describeImage(client, reference, 'amd64', signal);
  for (const [index, blob] of manifest.layers.entries()) {
    const diffId = config.rootfs.diff_ids[index];
    if (diffId === undefined) throw new Error(`${image}: no diffID for layer ${index}`);
    const items = readLayer(client.readBlob(reference, blob, signal), { ...blob, diffId }, signal);
    for await (const item of items) {
      if (item.type === 'file') for await (const _ of item.content as AsyncIterable<Uint8Array>);
    }
  }
}

/** Asks for another build of the same inputs, as an admin would who has mended something. */
async function rebuild(pool: string, value: string): Promise<void> {
  const { name } = (await under.buildOf(pool, () => true)).metadata;
  const body = { metadata: { annotations: { [annotations.rebuild]: value } } };
  await under.cluster.client.patch(MachineOSConfigs, pool, { type: 'merge', body }, { signal });
  await under.configOf(pool, ({ status }) => status?.machineOSBuild?.name !== name);
}

test.each([
  ['in the middle of an upload', 'upload', 'blobs'],
  ['before the manifest', 'manifest', 'manifests'],
])(
  'a registry that goes down %s: nothing is seen of the image until it is whole',
  async (_, pool, struck) => {
    let strikes = 0;
    proxy.decide((line) => {
      if (!line.startsWith(`PUT /v2/os/${pool}/${struck}/`) || strikes === 2) return 'none';
      strikes += 1;
      return 'cut';
    });
    await under.layerPool(pool, { secret: 'both', pushSpec: `${proxy.host}/os/${pool}:latest` });
    const done = await under.buildOf(pool, has('Succeeded'));
    expect(strikes).toBe(2);
    const image = done.status?.digestedImagePushSpec;
    await readWhole(image?.replace(proxy.host, under.registry.host));
  },
);

test('a layer that another client deletes before the manifest is sent once more', async () => {
  const deletions: { digest: string; status: number; answer: string }[] = [];
  let raced = false;
  proxy.decide(async (line): Promise<Fault> => {
    // Not what other pools push, such as their image for new nodes.
    if (!line.startsWith('PUT /v2/os/raced/manifests/') || raced) return 'none';
    raced = true;
    const uploads = proxy.requests.filter((known) => known.startsWith('PUT /v2/os/raced/blobs/uploads/'));
    const digest = decodeURIComponent(/digest=([^&]+)/.exec(uploads[0] ?? '')?.[1] ?? '');
    const authorization = `Basic ${Buffer.from('builder:secret').toString('base64')}`;
    const url = `http://${under.registry.host}/v2/os/raced/blobs/${digest}`;
    // A connection of its own: one that was kept open since the registry's start may be ending just now.
    const headers = { authorization, connection: 'close' };
    const answered = await fetch(url, { method: 'DELETE', headers });
    deletions.push({ digest, status: answered.status, answer: await answered.text() });
    return 'none';
  });
  await under.layerPool('raced', { secret: 'both', pushSpec: `${proxy.host}/os/raced:latest` });
  const done = await under.buildOf('raced', has('Succeeded'));
  expect(deletions).toMatchObject([{ status: 202 }]);
  await readWhole(done.status?.digestedImagePushSpec?.replace(proxy.host, under.registry.host));
});

test('a base image that has vanished fails the build by its name, and works when it is back', async () => {
  const name = `${under.registry.host}/os/vanishing`;
  const push = () => pushBaseImage(under.registryClient(), `${name}:1`, signal);
  const digest = await push();
  await under.registryClient().deleteManifest(parseReference(name), digest, signal);
  await under.layerPool('vanished', { secret: 'both', base: `${name}@${digest}` });
  const failed = await under.buildOf('vanished', has('Failed'));
  expect(messages(failed)).toContain(digest);
  expect((await under.configOf('vanished', () => true)).status?.currentImagePullSpec).toBeUndefined();
  await push();
  await rebuild('vanished', 'the base is back');
  await under.buildOf('vanished', has('Succeeded'));
});

test('an index without an image for the nodes fails the build with what there is', async () => {
  const client = under.registryClient();
  const name = `${under.registry.host}/os/foreign`;
  const arm64 = await pushBaseImage(client, `${name}:arm64`, signal, 'arm64');
  const index = await pushIndex(client, parseReference(`${name}:1`), [arm64], signal);
  await under.layerPool('foreign', { secret: 'both', base: `${name}@${index}` });
  expect(messages(await under.buildOf('foreign', has('Failed')))).toMatch(
    /linux\/amd64; the index has linux\/arm64/,
  );
});

describe('a Secret', () => {
  const retrying = (text: string) => (build: MachineOSBuild) => messages(build).includes(text);

  test('that is missing is reported by name, and the build continues when it exists', async () => {
    await under.layerPool('unset', { secret: 'absent' });
    await under.buildOf('unset', retrying('Secret shale-system/absent'));
    await under.createSecret('absent', under.auths('secret'));
    await under.buildOf('unset', has('Succeeded'));
  });

  test.each([
    ['no JSON', 'hunter2 is no JSON'],
    ['no registries in it', '{"auths":"hunter2"}'],
  ])(
    'with %s is reported by name without its content, and the build continues when it is fixed',
    async (what, text) => {
      const name = what.replaceAll(' ', '-').toLowerCase();
      // In one of kubernetes.io/dockerconfigjson, an API server takes JSON alone.
      await under.createSecret(name, text, 'Opaque');
      await under.layerPool(name, { secret: name });
      const waiting = await under.buildOf(name, retrying(`Secret shale-system/${name}`));
      expect(JSON.stringify(waiting)).not.toContain('hunter2');
      const data = { '.dockerconfigjson': Buffer.from(under.auths('secret')).toString('base64') };
      const at = { namespace: NAMESPACE, signal };
      await under.cluster.client.patch(Secrets, name, { type: 'merge', body: { data } }, at);
      await under.buildOf(name, has('Succeeded'));
    },
  );
});

test('two builders by mistake make one image, and one MachineOSBuild of it', async () => {
  const other = new AbortController();
  const second = under.runBuilder(other.signal);
  onTestFinished(async () => {
    other.abort();
    await second;
  });
  await under.layerPool('contested', { secret: 'both' });
  const done = await under.buildOf('contested', has('Succeeded'));
  await under.changeFile('contested', 'server b');
  const config = await under.configOf('contested', ({ status }) => {
    const image = status?.currentImagePullSpec;
    return image !== undefined && image !== done.status?.digestedImagePushSpec;
  });
  const { items } = await under.cluster.client.list(MachineOSBuilds, { signal });
  const own = items.filter(({ spec }) => spec.machineOSConfig.name === 'contested');
  expect(own.map((build) => has('Succeeded')(build))).toEqual([true, true]);
  await readWhole(config.status?.currentImagePullSpec);
});
