/** A person who may edit one pool's MachineOSConfig, and nothing else, names the repository of another pool. */

import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { MachineOSConfigs } from '../../api/machine-os-config.ts';
import { PoolRevisions } from '../../api/pool-revision.ts';
import { parseReference } from '../../image/reference.ts';
import { type BuilderUnderTest, has, startBuilderUnderTest } from '../e2e/builder-under-test.ts';
import { seen } from '../e2e/cluster-under-test.ts';
import { deadline, patience } from '../fixtures/patience.ts';

const signal = deadline(200_000);
const stop = new AbortController();
let under: BuilderUnderTest;
let built: Promise<void>;

beforeAll(async () => {
  under = await startBuilderUnderTest(signal);
  await under.createSecret('push', under.auths('secret'));
  built = under.runBuilder(stop.signal);
}, patience(60_000));
afterAll(async () => {
  stop.abort();
  await built;
  await under.stop();
});

/** Waits until nodes may run an image. */
async function recorded(image: string | undefined): Promise<void> {
  for (;;) {
    const { items } = await under.cluster.client.list(PoolRevisions, { signal });
    if (items.some(({ spec }) => spec.image === image)) return;
    await delay(100, undefined, { signal });
  }
}

test('nothing of the one pool is built there, both objects say why, and the other pool goes on', async () => {
  const { client } = under.cluster;
  // The attacker's is the older one.
  for (const pool of ['attacker', 'victim']) {
    await under.layerPool(pool, { secret: 'push' });
    const build = await under.buildOf(pool, has('Succeeded'));
    const image = build.status?.digestedImagePushSpec;
    await recorded(image);
  }
  const repository = `${under.registry.host}/os/victim`;
  // Without the one for new nodes, which the builder publishes for the victim at any time.
  const tags = async () =>
    (await under.registryClient().listTags(parseReference(repository), signal)).filter(
      (tag) => tag !== 'current',
    );
  const before = (await tags()).toSorted();

  const body = { spec: { renderedImagePushSpec: `${repository}:latest` } };
  await client.patch(MachineOSConfigs, 'attacker', { type: 'merge', body }, { signal });
  await under.changeFile('attacker', 'server evil');
  const why = `repository ${repository} belongs to pool victim; name another one in renderedImagePushSpec of MachineOSConfig attacker`;
  const says = (status: { readonly conditions?: readonly { readonly message: string }[] } | undefined) =>
    status?.conditions?.some(({ message }) => message.includes(why)) === true;
  const config = await under.configOf('attacker', ({ status }) => says(status));
  expect(config.status?.conditions).toContainEqual(
    expect.objectContaining({ type: 'BuildWaiting', status: 'True', reason: 'RepositoryTaken' }),
  );
  await seen(client, MachineConfigPools, 'attacker', ({ status }) => says(status));
  expect((await tags()).toSorted()).toEqual(before);

  await under.changeFile('victim', 'server b');
  await under.buildOf('victim', (build) => has('Succeeded')(build) && !before.includes(build.metadata.name));
});
