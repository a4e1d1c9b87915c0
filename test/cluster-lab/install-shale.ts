import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { stringify } from 'yaml';
import { registryCAs, stockMachineConfig } from '../../workshop/sandbox/cluster-objects.ts';
import type { ClusterLab } from './cluster-lab.ts';

const MANIFESTS = path.join(import.meta.dirname, '../../manifests');
export const NAMESPACE = 'shale-system';
/** Secrets for the registry: that of pods and of the builder, and that of the nodes. */
export const REGISTRY_SECRET = 'registry';
const NODE_SECRET = 'node-pull-secret';

/** Workloads that pull the image from a registry which asks for a password. */
const PULLING = [
  { kind: 'Deployment', name: 'shale-operator' },
  { kind: 'DaemonSet', name: 'shale-daemon' },
] as const;

/**
 * Installs Shale as docs/install.md has it: the overlay for plain ostree with a second operator, the image in a private
 * registry, and an egress proxy.
 */
export async function installShale(lab: ClusterLab, proxy: string): Promise<void> {
  await lab.kubectl(['create', 'namespace', NAMESPACE]);
  await addRegistry(lab);
  const directory = path.join(lab.dir, 'os');
  await mkdir(directory, { recursive: true });
  const at = (name: string) => path.relative(directory, path.join(MANIFESTS, name));
  const patch = JSON.stringify([
    { op: 'add', path: '/spec/template/spec/imagePullSecrets', value: [{ name: REGISTRY_SECRET }] },
    ...Object.entries({ HTTPS_PROXY: proxy, NO_PROXY: '.svc,10.96.0.0/16' }).map(([name, value]) => ({
      op: 'add',
      path: '/spec/template/spec/containers/0/env/-',
      value: { name, value },
    })),
  ]);
  const kustomization = {
    apiVersion: 'kustomize.config.k8s.io/v1beta1',
    kind: 'Kustomization',
    resources: [at('overlays/ostree')],
    components: [at('components/high-availability')],
    images: [{ name: 'shale', newName: lab.image.name, newTag: lab.image.tag }],
    patches: PULLING.map((target) => ({ target, patch })),
  };
  await writeFile(path.join(directory, 'kustomization.yaml'), stringify(kustomization));
  await lab.kubectl(['apply', '--server-side', '-k', directory]);
  for (const workload of ['deployment/shale-operator', 'daemonset/shale-daemon']) {
    await lab.kubectl(['rollout', 'status', '-n', NAMESPACE, workload, '--timeout=600s']);
  }
}

/** What admins add for their registry (docs/how-to/private-registry.md). */
async function addRegistry(lab: ClusterLab): Promise<void> {
  const { host, caPem, user } = lab.registry;
  await lab.kubectl(['apply', '-f', '-'], JSON.stringify(registryCAs({ [host]: caPem })));
  for (const name of [REGISTRY_SECRET, NODE_SECRET]) {
    const login = [
      '--docker-server',
      host,
      '--docker-username',
      user.name,
      '--docker-password',
      user.password,
    ];
    await lab.kubectl(['create', 'secret', 'docker-registry', '-n', NAMESPACE, name, ...login]);
  }
}

/** @returns the pool `worker`, and the MachineConfig that names what its nodes come with. */
export function poolObjects({ stock }: ClusterLab): string {
  const pool = {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfigPool',
    metadata: { name: 'worker' },
    spec: {
      machineConfigSelector: { matchLabels: { 'machineconfiguration.openshift.io/role': 'worker' } },
      nodeSelector: { matchLabels: { 'node-role.kubernetes.io/worker': '' } },
    },
  };
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [pool, stockMachineConfig(stock)] });
}
