/** A MachineOSConfig that starts from an image which `shale build` made outside of the cluster, and from others. */
import { generateKeyPairSync } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { signingKeyName } from '../../api/image-signing.ts';
import { Secrets } from '../../api/kubernetes.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { MachineOSBuilds } from '../../api/machine-os-build.ts';
import { MachineOSConfigs } from '../../api/machine-os-config.ts';
import { annotations, labels } from '../../api/names.ts';
import type { Digest } from '../../api/references.ts';
import { parseReference } from '../../image/reference.ts';
import { isImageSignedBy } from '../../image/signature/sign-image.ts';
import { parseSigningKey, type SigningKey } from '../../image/signature/signing-key.ts';
import { shale } from '../cli/shale-process.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import {
  type BuilderUnderTest,
  has,
  poolObjects,
  publishKey,
  startBuilderUnderTest,
} from './builder-under-test.ts';
import { NAMESPACE, seen } from './cluster-under-test.ts';

let under: BuilderUnderTest;
let built: Promise<void>;
let key: SigningKey;
const stop = new AbortController();
const signal = deadline(300_000);

beforeAll(async () => {
  under = await startBuilderUnderTest(signal);
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  key = parseSigningKey(pem, 'the test', undefined);
  const data = { 'cosign.key': Buffer.from(pem).toString('base64') };
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'signing' }, data };
  await under.cluster.client.create(Secrets, secret, { namespace: NAMESPACE, signal });
  await publishKey(await under.cluster.clientOf('shale-operator'), key.publicKey, signal);
  await under.createSecret('push', under.auths('secret'));
  built = under.runBuilder(stop.signal, { signingKeySecret: 'signing' });
}, patience(60_000));
afterAll(async () => {
  stop.abort();
  await built;
  await under.stop();
});

/**
 * @param text of the MachineConfig's one file, where it is another than the pool's. @returns the image of a pool's
 * objects, pushed to the pool's repository before there is such a pool.
 */
async function buildOutside(pool: string, text?: string): Promise<string> {
  const [newPool, config] = poolObjects(pool, under.base);
  const [file] = config.spec.config?.storage?.files ?? [];
  const other = { ...file, contents: { source: `data:,${encodeURIComponent(text ?? '')}` } };
  const spec = { ...config.spec, config: { ...config.spec.config, storage: { files: [other] } } };
  const items = [newPool, text === undefined ? config : { ...config, spec }];
  const files = path.join(under.dir, `${pool}.json`);
  await writeFile(files, JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
  const authfile = path.join(under.dir, 'auth.json');
  await writeFile(authfile, under.auths('secret'));
  const { host } = under.registry;
  const run = await shale([
    ...['build', '--pool', pool, '-f', files, '--base', under.base, '--push', `${host}/os/${pool}:outside`],
    ...['--plain-http', host, '--authfile', authfile, '--architecture', 'amd64'],
  ]);
  expect(run.stderr).toContain('one layer of');
  return run.stdout.trim();
}

const naming = (image: string) => ({ [annotations.preBuiltImage]: image });

test('a pool starts from the image: nothing is built, the key of the cluster signs it, the operator admits it', async () => {
  const image = await buildOutside('seeded');
  const digest = parseReference(image).digest as Digest;
  const at = parseReference(`${under.registry.host}/os/seeded`);
  const isSigned = () =>
    isImageSignedBy(under.registryClient(), at, { digest, publicKey: key.publicKey }, signal);
  expect(await isSigned()).toBe(false);
  await under.layerPool('seeded', { secret: 'push', annotations: naming(image) });
  const build = await under.buildOf('seeded', has('Succeeded'));
  expect(build.metadata.labels?.[labels.preBuiltImage]).toBe('true');
  expect(build.status).toMatchObject({
    builder: { imageBuilderType: 'PreBuilt' },
    digestedImagePushSpec: image,
    baseImage: under.base,
    signingKey: signingKeyName(key.publicKey),
    pushedImages: expect.arrayContaining([image]),
  });
  const succeeded = build.status?.conditions?.find(({ type }) => type === 'Succeeded');
  expect(succeeded?.reason).toBe('PreBuiltImageSeeded');
  expect(await isSigned()).toBe(true);
  // Of a pool without nodes it is the image for the first one only once the operator has computed it again.
  const admits = await seen(
    under.cluster.client,
    MachineConfigPools,
    'seeded',
    ({ status }) => status?.bootImage !== undefined,
  );
  expect(admits.status?.bootImage?.image).toBe(image);
});

test('the next change of such a pool is built, although the annotation is still there', async () => {
  const rendered = await under.changeFile('seeded', 'server b');
  const build = await under.buildOf(
    'seeded',
    (each) => each.spec.machineConfig.name === rendered && has('Succeeded')(each),
  );
  expect(build.status?.builder).toEqual({ imageBuilderType: 'Append' });
  expect(build.metadata.annotations).not.toHaveProperty([annotations.preBuiltImage]);
});

test('an image of another content is refused with what differs, until the annotation is removed', async () => {
  const image = await buildOutside('planted', 'server evil');
  await under.layerPool('planted', { secret: 'push', annotations: naming(image) });
  const refused = await under.buildOf('planted', has('Failed'));
  const failed = refused.status?.conditions?.find(({ type }) => type === 'Failed');
  expect(failed?.reason).toBe('PreBuiltImageRefused');
  expect(failed?.message).toContain(`${image} is not the image that the builder would build: `);
  expect(failed?.message).toContain('/etc/chrony.conf is a file of mode 0644');
  // Of what it has pushed, the record of the base, an image of somebody else's is none.
  expect(refused.status?.pushedImages ?? []).not.toContain(image);
  const { client } = under.cluster;
  const degraded = await seen(client, MachineConfigPools, 'planted', ({ status }) =>
    (status?.conditions ?? []).some(({ message }) => message?.includes('/etc/chrony.conf') === true),
  );
  expect(degraded.status?.bootImage).toBeUndefined();
  const body = { metadata: { annotations: { [annotations.preBuiltImage]: null } } };
  await client.patch(MachineOSConfigs, 'planted', { type: 'merge', body }, { signal });
  const build = await under.buildOf('planted', has('Succeeded'));
  expect(build.status?.builder).toEqual({ imageBuilderType: 'Append' });
  expect(build.status?.digestedImagePushSpec).not.toBe(image);
  const all = await client.list(MachineOSBuilds, { signal });
  expect(all.items.filter(({ spec }) => spec.machineOSConfig.name === 'planted')).toHaveLength(1);
});

test('a tag is refused, and the image that it names is taken by its digest', async () => {
  const image = await buildOutside('tagged');
  await under.layerPool('tagged', {
    secret: 'push',
    annotations: naming(`${under.registry.host}/os/tagged:outside`),
  });
  const refused = await under.buildOf('tagged', has('Failed'));
  expect(JSON.stringify(refused.status?.conditions)).toContain('expected an image by digest in the pool');
  const body = { metadata: { annotations: naming(image) } };
  await under.cluster.client.patch(MachineOSConfigs, 'tagged', { type: 'merge', body }, { signal });
  const build = await under.buildOf('tagged', has('Succeeded'));
  expect(build.status?.digestedImagePushSpec).toBe(image);
});
