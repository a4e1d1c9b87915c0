import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { execa } from 'execa';
import { Nodes } from '../../api/kubernetes.ts';
import { labels } from '../../api/names.ts';
import type { DigestedPullspec } from '../../api/references.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { tokenConnection } from '../../cluster/connection.ts';
import { createApiClient } from '../../cluster/http-api-client.ts';
import { conditionIsTrue } from '../../cluster/update-object.ts';
import { kubeconfigText } from '../../workshop/apiserver/control-plane/control-plane.ts';
import { CACHE } from '../../workshop/sandbox/layout.ts';
import { createNodes, removeNode } from '../../workshop/sandbox/node/create.ts';
import type { InstalledNode } from '../../workshop/sandbox/node-kind.ts';
import { pushImage } from '../../workshop/sandbox/registry.ts';
import {
  ensureRootfsArchive,
  type RootfsArchive,
  rootfsSource,
} from '../../workshop/sandbox/systemd-node/rootfs-archive.ts';
import { cloneNode } from '../../workshop/sandbox/systemd-node/systemd-nodes.ts';
import { shale } from '../cli/shale-process.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import type { GivenPrograms } from './given-programs.ts';
import { KUBELET_CLIENT, type LabControlPlane, startLabControlPlane } from './lab-control-plane.ts';
import { configureMachine, type LabMachine, startLabMachine } from './lab-machine.ts';
import {
  type MachineNetwork,
  machineNetwork,
  makeNetwork,
  networkFile,
  podNetworkFile,
} from './lab-network.ts';
import { type LabRegistry, startLabRegistry } from './lab-registry.ts';
import { machineLayer, machineRecipe } from './machine-image.ts';
import { ENFORCER_CONFIG, enforcerObjects } from './policy-enforcer.ts';
import { buildImages, type PushedImage } from './shale-image.ts';

export const MACHINES = ['worker-0', 'worker-1'] as const;
/** Time for the hook that starts it. */
export const START_MS = 900_000;
const STEP_MS = 300_000;

/** A real cluster: its control plane on this machine, and two machines with kubelets. */
export interface ClusterLab extends AsyncDisposable {
  /** The administrator's. */
  readonly client: ApiClient;
  readonly controlPlane: LabControlPlane;
  readonly registry: LabRegistry;
  readonly machines: readonly LabMachine[];
  /** What the machines come with. */
  readonly stock: DigestedPullspec;
  /** Shale's. */
  readonly image: PushedImage;
  /** A directory of the test's, in which commands are run. */
  readonly dir: string;
  /** @returns what kubectl printed. @throws ExecaError when it fails. */
  kubectl(args: readonly string[], input?: string): Promise<string>;
  /** @returns what kubectl warned of. @throws ExecaError when it fails. */
  kubectlWarns(args: readonly string[]): Promise<string>;
  /** @returns what shale printed. @throws Error when it fails. */
  shale(...args: readonly string[]): Promise<string>;
}

/** Builds what takes minutes and needs packages, once: in the machine's network, before the cluster has its own. */
export async function prepareClusterLab(given: GivenPrograms): Promise<void> {
  await ensureRootfsArchive(CACHE, deadline(START_MS), undefined, machineRecipe(given));
}

/** @returns the cluster once both nodes are Ready; nothing of Shale is installed yet. */
export async function startClusterLab(given: GivenPrograms): Promise<ClusterLab> {
  const base = await mkdtemp(path.join(tmpdir(), 'shale-cluster-'));
  const stack = new AsyncDisposableStack();
  stack.defer(() => rm(base, { recursive: true, force: true }));
  try {
    const lab = await startParts(given, base, stack);
    return { ...lab, [Symbol.asyncDispose]: () => stack.disposeAsync() };
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

async function startParts(
  given: GivenPrograms,
  base: string,
  stack: AsyncDisposableStack,
): Promise<Omit<ClusterLab, typeof Symbol.asyncDispose>> {
  const [shared, control, dir] = ['shared', 'control-plane', 'work'].map((name) => path.join(base, name)) as [
    string,
    string,
    string,
  ];
  for (const each of [shared, control, dir]) await mkdir(each);
  await makeNetwork(MACHINES.length);
  const registry = await startLabRegistry(path.join(base, 'registry'));
  stack.defer(() => registry.stop());
  const controlPlane = await startLabControlPlane(given, control, MACHINES);
  stack.defer(() => controlPlane.stop());
  const archive = await ensureRootfsArchive(CACHE, deadline(START_MS), undefined, machineRecipe(given));
  const image = await buildImages(archive.rootfs, shared, registry);
  const { stock, install } = await stockImage(given, archive, registry);
  const machines = await startMachines(base, { shared, controlPlane, registry, install }, stack);
  const { url, token, caPem } = controlPlane.access;
  const client = createApiClient(tokenConnection(url, token, caPem));
  const kubeconfig = path.join(dir, 'kubeconfig');
  await writeFile(kubeconfig, kubeconfigText(controlPlane.access), { mode: 0o600 });
  const env = { KUBECONFIG: kubeconfig, HOME: dir };
  const run = (args: readonly string[], input = '') => execa(given.kubectl, args, { cwd: dir, env, input });
  const kubectl: ClusterLab['kubectl'] = async (args, input) => (await run(args, input)).stdout;
  await kubectl([
    ...['create', 'clusterrolebinding', KUBELET_CLIENT],
    '--clusterrole=system:kubelet-api-admin',
    `--user=${KUBELET_CLIENT}`,
  ]);
  await kubectl(['apply', '-f', '-'], enforcerObjects());
  for (const { name, ended } of machines) {
    await Promise.race([untilReady(client, name), ended]);
    await kubectl(['label', 'node', name, `${labels.nodeRolePrefix}worker=`]);
  }
  return {
    client,
    controlPlane,
    registry,
    machines,
    stock,
    image,
    dir,
    kubectl,
    kubectlWarns: async (args) => (await run(args)).stderr,
    shale: async (...args) => {
      const { exitCode, stdout, stderr } = await shale(args, { env });
      if (exitCode !== 0)
        throw new Error(`shale ${args.join(' ')}: exit code ${exitCode}\n${stdout}${stderr}`);
      return stdout;
    },
  };
}

/** What machines are installed from, offline: its digest is that of the image in the registry. */
async function stockImage(given: GivenPrograms, archive: RootfsArchive, registry: LabRegistry) {
  const entries = await machineLayer(archive.rootfs, given);
  const stock = await pushImage(registry, 'os/stock', { entries, onto: archive }, deadline(STEP_MS));
  const source = await rootfsSource(archive, entries);
  const install = (machines: readonly InstalledNode[]) => {
    const signal = deadline(STEP_MS);
    return createNodes(machines, { image: stock, source, signal }, (from, to) => cloneNode(from, to, signal));
  };
  return { stock, install };
}

async function startMachines(
  base: string,
  parts: {
    readonly shared: string;
    readonly controlPlane: LabControlPlane;
    readonly registry: LabRegistry;
    readonly install: (machines: readonly InstalledNode[]) => Promise<void>;
  },
  stack: AsyncDisposableStack,
): Promise<readonly LabMachine[]> {
  const directory = (name: string) => path.join(base, name);
  for (const name of MACHINES) stack.defer(() => removeNode(directory(name)));
  await parts.install(MACHINES.map((name) => ({ name, directory: directory(name) })));
  const networks = MACHINES.map((_, index) => machineNetwork(index));
  const started = MACHINES.map(async (name, index) => {
    const dir = directory(name);
    const own = machineNetwork(index);
    const rest = networks.filter(({ address }) => address !== own.address);
    await configureMachine(dir, machineFiles(name, own, rest, parts));
    const machine = await startLabMachine({ dir, name, shared: parts.shared });
    stack.use(machine);
    await machine.sh('ctr --namespace k8s.io images import /run/lab/pause-image.tar', STEP_MS);
    return machine;
  });
  return Promise.all(started);
}

function machineFiles(
  name: string,
  own: MachineNetwork,
  others: readonly MachineNetwork[],
  {
    controlPlane: { access, kubeletConfig, enforcerConfig },
    registry: { host, caPem },
  }: { readonly controlPlane: LabControlPlane; readonly registry: LabRegistry },
): Readonly<Record<string, string>> {
  const certificates = `etc/containerd/certs.d/${host}`;
  return {
    [`${certificates}/ca.crt`]: caPem,
    [`${certificates}/hosts.toml`]: `[host."https://${host}"]\nca = "/${certificates}/ca.crt"\n`,
    'etc/systemd/network/10-lab.network': networkFile(own, others),
    'etc/cni/net.d/10-pods.conflist': podNetworkFile(own),
    'etc/kubernetes/ca.crt': access.caPem,
    'etc/kubernetes/kubelet.kubeconfig': kubeletConfig(name),
    'etc/kubernetes/kubelet.env': `NODE_NAME=${name}\nKUBELET_ARGUMENTS=--hostname-override=${name} --node-ip=${own.address}\n`,
    [ENFORCER_CONFIG]: enforcerConfig(),
  };
}

async function untilReady(client: ApiClient, node: string): Promise<void> {
  await until(`node ${node} is Ready`, async () => {
    const found = await client.find(Nodes, node);
    return conditionIsTrue(found?.status?.conditions, 'Ready');
  });
}

const POLL_MS = 300;

/** @returns once it holds. @throws Error when it doesn't within the limit, with what was seen last. */
export async function until(
  what: string,
  holds: () => Promise<boolean | string>,
  limitMs = STEP_MS,
): Promise<void> {
  const end = deadline(limitMs);
  for (;;) {
    const seen = await holds();
    if (seen === true) return;
    if (end.aborted) throw new Error(`not within ${patience(limitMs) / 1000} s: ${what}; seen last: ${seen}`);
    await delay(POLL_MS);
  }
}
