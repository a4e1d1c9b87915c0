import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Leases, type Node, Nodes } from '../../../api/kubernetes.ts';
import { type MachineConfigNode, MachineConfigNodes } from '../../../api/machine-config-node.ts';
import { DEFAULT_LEASE_NAMESPACE, SIGNING_KEY_SECRET } from '../../../api/names.ts';
import { present } from '../../../api/present.ts';
import { type DigestedPullspec, parseDigestedPullspec } from '../../../api/references.ts';
import { isStartupTaint } from '../../../api/startup-taint.ts';
import { conditionIsTrue } from '../../../cluster/update-object.ts';
import { parseReference } from '../../../image/reference.ts';
import { pushImage } from '../../../workshop/sandbox/registry.ts';
import { type ShaleRun, shale } from '../../cli/shale-process.ts';
import { type BuilderUnderTest, runLayering, startBuilderUnderTest } from '../../e2e/builder-under-test.ts';
import { seen } from '../../e2e/cluster-under-test.ts';
import { until } from '../../e2e/sandbox-under-test.ts';
import { deadline } from '../../fixtures/patience.ts';
import type { LabSystem } from '../lab-node.ts';
import { addMachine, type FreshMachine, type MachineToAdd } from './fresh-machine.ts';
import { type PodWatch, watchPods } from './pod-watch.ts';
import { KUBELET_ENTRIES } from './stock-entries.ts';

export const POOL = 'worker';
const SECRET = 'registry';
const PASSWORD = 'secret';
const SETUP_MS = 600_000;
/** From the Node to its first pod: with one reboot, and an image to pull. */
const READY_MS = 300_000;

/**
 * A cluster that grows: the operator and the builder as they ship, a registry that asks for a password, a pool in
 * layered mode without nodes, and machines that are added to it.
 */
export interface NewNodesLab extends AsyncDisposable {
  /** What the pool's image is based on. */
  readonly stock: DigestedPullspec;
  /** The pool's image for new nodes, by now. */
  readonly image: DigestedPullspec;
  readonly pods: PodWatch;
  /** Runs shale as the cluster's administrator. */
  shale(...args: readonly string[]): Promise<ShaleRun>;
  add(machine: MachineToAdd): Promise<FreshMachine>;
  /** @returns one that was added. */
  machine(name: string): FreshMachine;
  /** Deletes a Node, and waits until the operator has nothing of it any more: no object, no lease. */
  forget(name: string): Promise<void>;
  /** Changes the pool's config, and waits for its image. */
  change(content: string): Promise<void>;
  /** Labels a node for another pool of the same stock image. @returns the node's object once it is Updated there. */
  move(name: string, pool: string): Promise<MachineConfigNode>;
  /** Deletes an image from the registry. */
  prune(image: DigestedPullspec): Promise<void>;
  /** @returns the Node once pods may be on it. @throws when they may not in time. */
  inService(name: string): Promise<Node>;
}

/** @param system of the machines. */
export async function startNewNodesLab(system: LabSystem): Promise<NewNodesLab> {
  const signal = deadline(SETUP_MS);
  await using parts = new AsyncDisposableStack();
  const directory = await mkdtemp(path.join(system.directory ?? tmpdir(), 'shale-new-nodes-'));
  parts.defer(() => rm(directory, { recursive: true, force: true }));
  const archive = await system.archive();
  const builder = parts.adopt(await startBuilderUnderTest(deadline(24 * 3_600_000)), (it) => it.stop());
  const stopping = new AbortController();
  const { cluster, registry } = builder;
  const running = [
    runLayering(cluster, SIGNING_KEY_SECRET, stopping.signal),
    builder.runBuilder(stopping.signal, { signingKeySecret: SIGNING_KEY_SECRET }),
  ];
  parts.defer(async () => {
    stopping.abort();
    await Promise.all(running);
  });
  const between = system.entries?.(registry.host);
  const stock = await pushImage(
    { host: registry.host, client: builder.registryClient() },
    'os/stock-machine',
    { entries: KUBELET_ENTRIES, onto: archive, ...present({ between, bootable: system.bootable }) },
    signal,
  );
  const pods = await watchPods(cluster.client, stopping.signal);
  await builder.createSecret(SECRET, builder.auths(PASSWORD));
  await builder.layerPool(POOL, { secret: SECRET, base: stock });
  let image = await publishedImage(builder, POOL, undefined);
  const machines = new Map<string, FreshMachine>();
  const kubeconfig = path.join(directory, 'kubeconfig');
  await writeFile(kubeconfig, cluster.kubeconfig(), { mode: 0o600 });
  const around = {
    client: cluster.client,
    kubeconfig,
    registryHost: registry.host,
    system,
    directory,
    authFile: builder.auths(PASSWORD),
  };
  const owned = parts.move();
  return {
    stock,
    get image() {
      return image;
    },
    pods,
    shale: (...args) => shale(args, { env: { KUBECONFIG: kubeconfig, HOME: directory } }),
    add: async (to) => {
      const machine = owned.use(await addMachine(around, to));
      machines.set(to.name, machine);
      return machine;
    },
    machine: (name) => {
      const machine = machines.get(name);
      if (machine === undefined) throw new Error(`${name} was not added`);
      return machine;
    },
    forget: async (name) => {
      await cluster.client.delete(Nodes, name);
      await until(`${name} is forgotten`, async () => {
        const [object, lease] = await Promise.all([
          cluster.client.find(MachineConfigNodes, name),
          cluster.client.find(Leases, `node-${name}`, { namespace: DEFAULT_LEASE_NAMESPACE }),
        ]);
        return object === undefined && lease?.spec?.holderIdentity === undefined;
      });
      pods.forget(name);
    },
    change: async (content) => {
      await builder.changeFile(POOL, content);
      image = await publishedImage(builder, POOL, image);
    },
    move: async (name, pool) => {
      await builder.layerPool(pool, { secret: SECRET, base: stock });
      const wanted = await publishedImage(builder, pool, undefined);
      const labels = { pool };
      await cluster.client.patch(Nodes, name, { type: 'merge', body: { metadata: { labels } } });
      const isThere = ({ status }: MachineConfigNode) =>
        status?.configImage?.currentImage === wanted && conditionIsTrue(status.conditions, 'Updated');
      return seen(cluster.client, MachineConfigNodes, name, isThere, READY_MS);
    },
    prune: async (old) => {
      const { digest, ...at } = parseReference(old);
      if (digest === undefined) throw new TypeError(`${old}: expected a digest`);
      await builder.registryClient().deleteManifest(at, digest, deadline(SETUP_MS));
    },
    inService: (name) =>
      seen(
        cluster.client,
        Nodes,
        name,
        ({ spec }) => spec?.taints?.some(isStartupTaint) !== true && pods.firstPodOn(name) !== undefined,
        READY_MS,
      ),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/**
 * @param before what it was; undefined for the first one. @returns the pool's image for new nodes, once its tag names
 * it.
 */
async function publishedImage(
  builder: BuilderUnderTest,
  pool: string,
  before: DigestedPullspec | undefined,
): Promise<DigestedPullspec> {
  const { status } = await builder.configOf(pool, ({ status: seenStatus }) => {
    const image = seenStatus?.publishedImage?.image;
    return image !== undefined && image !== before;
  });
  return parseDigestedPullspec(status?.publishedImage?.image ?? '');
}
