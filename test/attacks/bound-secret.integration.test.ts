/**
 * A tool that may do everything applies what people of several teams write: one of them names another pool's Secret in
 * the MachineOSConfig of their own. The Secret's label says whose it is.
 */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { Secrets } from '../../api/kubernetes.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import { labels } from '../../api/names.ts';
import { parseReference } from '../../image/reference.ts';
import { type BuilderUnderTest, has, startBuilderUnderTest } from '../e2e/builder-under-test.ts';
import { NAMESPACE } from '../e2e/cluster-under-test.ts';
import { deadline, patience } from '../fixtures/patience.ts';

const signal = deadline(200_000);
const stop = new AbortController();
let under: BuilderUnderTest;
let built: Promise<void>;

beforeAll(async () => {
  under = await startBuilderUnderTest(signal);
  await under.createSecret('victims-push', under.auths('secret'));
  await label('victims-push', { [labels.pool]: 'victim' });
  built = under.runBuilder(stop.signal);
}, patience(60_000));
afterAll(async () => {
  stop.abort();
  await built;
  await under.stop();
});

async function label(name: string, own: Readonly<Record<string, string>>): Promise<void> {
  const body = { metadata: { labels: own } };
  const { client } = under.cluster;
  await client.patch(Secrets, name, { type: 'merge', body }, { namespace: NAMESPACE, signal });
}

test('its build doesn’t use the Secret, the build says why, and the other pool’s builds go on', async () => {
  await under.layerPool('attacker', { secret: 'victims-push' });
  const why =
    'Secret shale-system/victims-push: its label shale.dev/pool says that only pool victim may use it, and MachineOSConfig attacker names it';
  const isRetried = ({ status }: MachineOSBuild) => (status?.attempts ?? 0) > 0;
  const build = await under.buildOf('attacker', (each) => isRetried(each) || has('Succeeded')(each));
  expect(build.status?.conditions?.find(({ type }) => type === 'Building')?.message).toContain(why);
  expect(build.status?.digestedImagePushSpec).toBeUndefined();
  await under.layerPool('victim', { secret: 'victims-push' });
  await under.buildOf('victim', has('Succeeded'));
  const repository = parseReference(`${under.registry.host}/os/attacker`);
  expect(await under.registryClient().listTags(repository, signal)).toEqual([]);
});
