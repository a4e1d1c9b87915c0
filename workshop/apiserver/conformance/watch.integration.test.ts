/** Watches as Kubernetes documents them; the same file runs against a kube-apiserver. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Api, START_MS, startApi, uniqueName } from './api.ts';

let api: Api;
beforeAll(async () => {
  api = await startApi();
}, START_MS);
afterAll(() => api.stop());

const configMaps = '/api/v1/namespaces/default/configmaps';

async function create(name: string, labels: Record<string, string> = {}) {
  const { body } = await api.call('POST', configMaps, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, labels },
  });
  return body;
}

const label = (name: string, labels: Record<string, string | null>) =>
  api.call(
    'PATCH',
    `${configMaps}/${name}`,
    { metadata: { labels } },
    { contentType: 'application/merge-patch+json' },
  );

test('a watch goes on where a list ended', async () => {
  const { body } = await api.call('GET', configMaps);
  const name = uniqueName('watch');
  await create(name);
  const watch = await api.watch(`${configMaps}?watch=true&resourceVersion=${body.metadata.resourceVersion}`);
  await label(name, { a: 'b' });
  await api.call('DELETE', `${configMaps}/${name}`);
  const events = [await watch.next(), await watch.next(), await watch.next()];
  watch.close();
  expect(events.map(({ type }) => type)).toEqual(['ADDED', 'MODIFIED', 'DELETED']);
  expect(events.map(({ object }) => object.metadata.name)).toEqual([name, name, name]);
  const versions = events.map(({ object }) => Number(object.metadata.resourceVersion));
  expect(versions).toEqual([...versions].sort((a, b) => a - b));
});

test('a watch without a resourceVersion begins with what is there', async () => {
  const name = uniqueName('initial');
  await create(name);
  const watch = await api.watch(`${configMaps}?watch=true&fieldSelector=metadata.name%3D${name}`);
  const event = await watch.next();
  watch.close();
  expect([event.type, event.object.metadata.name]).toEqual(['ADDED', name]);
});

test('an object that leaves the selection is deleted for the watch', async () => {
  const key = uniqueName('key');
  const { body } = await api.call('GET', configMaps);
  const watch = await api.watch(
    `${configMaps}?watch=true&labelSelector=${key}&resourceVersion=${body.metadata.resourceVersion}`,
  );
  const name = uniqueName('selected');
  await create(name);
  await label(name, { [key]: 'x' });
  await label(name, { [key]: null });
  const events = [await watch.next(), await watch.next()];
  watch.close();
  expect(events.map(({ type }) => type)).toEqual(['ADDED', 'DELETED']);
});

test('a watch by initial events says when they are over', async () => {
  const name = uniqueName('stream');
  await create(name);
  const query =
    'watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true';
  const watch = await api.watch(`${configMaps}?${query}&fieldSelector=metadata.name%3D${name}`);
  const events = [await watch.next(), await watch.next()];
  watch.close();
  expect(events.map(({ type }) => type)).toEqual(['ADDED', 'BOOKMARK']);
  expect(events[1]?.object.metadata.annotations).toEqual({ 'k8s.io/initial-events-end': 'true' });
});

test('a watch ends with its time', async () => {
  const { body } = await api.call('GET', configMaps);
  const watch = await api.watch(
    `${configMaps}?watch=true&timeoutSeconds=1&resourceVersion=${body.metadata.resourceVersion}`,
  );
  await expect(watch.next()).rejects.toThrow('ended');
});

test('a watch that ends says before how far it came', async (context) => {
  // kube-apiserver does so where other objects of the kind have changed meanwhile, on a timer of its own.
  if (api.isReal) context.skip('this control plane reports it at times of its own');
  const { body } = await api.call('GET', configMaps);
  const watch = await api.watch(
    `${configMaps}?watch=true&timeoutSeconds=1&allowWatchBookmarks=true&resourceVersion=${body.metadata.resourceVersion}`,
  );
  const event = await watch.next();
  expect(event.type).toBe('BOOKMARK');
  expect(Number(event.object.metadata.resourceVersion)).toBeGreaterThanOrEqual(
    Number(body.metadata.resourceVersion),
  );
  await expect(watch.next()).rejects.toThrow('ended');
});

test('a watch from too long ago is refused as expired', async (context) => {
  if (api.isReal) context.skip('this control plane has forgotten nothing yet');
  const { status, body } = await api.call('GET', `${configMaps}?watch=true&resourceVersion=1`);
  // kube-apiserver answers 200 with one ERROR event, or 410 at once.
  const seen = status === 200 ? body.object : body;
  expect([seen.code, seen.reason]).toEqual([410, 'Expired']);
});
