import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { type Node, Nodes } from '../../api/kubernetes.ts';
import { WatchedCluster } from '../../test/fixtures/fleet/watched-cluster.ts';
import { aNode } from '../../test/fixtures/objects.ts';
import { createPageCaches } from './page-caches.ts';

test('of a Node it holds what the page shows, not the images that its kubelet lists', async () => {
  const cluster = new WatchedCluster();
  const node = aNode('a', { spec: { unschedulable: true } });
  const images = [{ names: ['registry.example.com/a:1'], sizeBytes: 1 }];
  cluster.put(Nodes, { ...node, status: { ...node.status, images } as NonNullable<Node['status']> });
  const { caches, start } = createPageCaches(cluster.watchingClient(), 'leases', pino({ level: 'silent' }));
  const stop = new AbortController();
  const ended = start(stop.signal);
  onTestFinished(async () => {
    stop.abort();
    await ended;
  });
  await caches.nodes.synced();
  const [held] = caches.nodes.list();
  expect(held?.spec).toEqual({ unschedulable: true });
  expect(held?.status).not.toHaveProperty('images');
});
