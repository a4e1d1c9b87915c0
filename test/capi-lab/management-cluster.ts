import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { CustomResourceDefinitions } from '../../api/kubernetes.ts';
import { clusterKind, type Kind, type KubernetesObject, type NewObject } from '../../api/object.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { tokenConnection } from '../../cluster/connection.ts';
import { createApiClient } from '../../cluster/http-api-client.ts';
import { conditionIsTrue } from '../../cluster/update-object.ts';
import { startProcess } from '../../workshop/apiserver/control-plane/child-process.ts';
import type { ControlPlane } from '../../workshop/apiserver/control-plane/control-plane.ts';
import { freePort } from '../../workshop/apiserver/control-plane/free-port.ts';
import { startKubeApiServer } from '../../workshop/apiserver/control-plane/kube-apiserver.ts';
import type { Authority } from '../../x509/certificate.ts';
import { until } from '../cluster-lab/cluster-lab.ts';
import { keepLogFile } from '../fixtures/kept-logs.ts';
import { PROVIDERS, type Provider } from './given-programs.ts';
import { labDefinitions } from './lab-provider-kinds.ts';
import { providerDefinitions, providerWebhooks, type WebhookServer } from './provider-webhooks.ts';

/** A kube-apiserver with Cluster API's kinds, and Cluster API's controllers as processes. */
export interface ManagementCluster extends AsyncDisposable {
  /** The administrator's. */
  readonly client: ApiClient;
  readonly controlPlane: ControlPlane;
  /** @returns the file that a provider logs into. */
  logOf(provider: Provider): string;
}

/** With whatever they have: Shale's own kind of them knows only what it reads. */
const Definitions: Kind<KubernetesObject> = CustomResourceDefinitions;

const WEBHOOK_KINDS = ['MutatingWebhookConfiguration', 'ValidatingWebhookConfiguration'].map((kind) =>
  clusterKind('admissionregistration.k8s.io/v1', kind),
);

/** Off by default in Cluster API 1.14, all alpha but the last. */
const FEATURE_GATES: Readonly<Record<Provider, string>> = {
  'cluster-api-core': 'RuntimeSDK=true,InPlaceUpdates=true,ClusterTopology=false',
  'kubeadm-bootstrap': 'KubeadmBootstrapFormatIgnition=true',
  'kubeadm-control-plane': 'RuntimeSDK=true,InPlaceUpdates=true',
};

export interface ManagementOptions {
  /** Of Cluster API's programs. */
  readonly programs: string;
  /** For logs and certificates. */
  readonly dir: string;
  /** Whose certificates the webhooks serve with. */
  readonly authority: Authority;
  readonly signal: AbortSignal;
}

/** @returns it once every provider is ready. @throws Error that names what did not become ready. */
export async function startManagementCluster(options: ManagementOptions): Promise<ManagementCluster> {
  const stack = new AsyncDisposableStack();
  try {
    const controlPlane = await startKubeApiServer(options.programs, options.signal);
    stack.defer(() => controlPlane.stop());
    const { url, token, caPem } = controlPlane.access;
    const client = createApiClient(tokenConnection(url, token, caPem));
    const logOf = (provider: Provider) => path.join(options.dir, `${provider}.log`);
    await installProviders(client, controlPlane, options, logOf, stack);
    return { client, controlPlane, logOf, [Symbol.asyncDispose]: () => stack.disposeAsync() };
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

async function installProviders(
  client: ApiClient,
  controlPlane: ControlPlane,
  options: ManagementOptions,
  logOf: (provider: Provider) => string,
  stack: AsyncDisposableStack,
): Promise<void> {
  const { programs, dir, signal } = options;
  const kubeconfig = path.join(dir, 'kubeconfig');
  await writeFile(kubeconfig, controlPlane.kubeconfig(), { mode: 0o600 });
  const servers = await Promise.all(PROVIDERS.map((provider) => prepareWebhooks(provider, options)));
  const definitions = await Promise.all(
    servers.map(({ provider, server }) => providerDefinitions(programs, provider, server)),
  );
  await defineKinds(client, [...definitions.flat(), ...labDefinitions()], signal);
  for (const { provider, port, certificates, server } of servers) {
    const health = `127.0.0.1:${await freePort()}`;
    const diagnostics = `127.0.0.1:${await freePort()}`;
    const running = await startProcess({
      name: provider,
      command: path.join(programs, provider),
      args: [
        `--feature-gates=${FEATURE_GATES[provider]}`,
        `--webhook-port=${port}`,
        `--webhook-cert-dir=${certificates}`,
        `--health-addr=${health}`,
        `--diagnostics-address=${diagnostics}`,
        '--insecure-diagnostics=true',
        '--v=4',
      ],
      env: { KUBECONFIG: kubeconfig, HOME: dir, POD_NAMESPACE: 'default' },
      logFile: logOf(provider),
      onExit: () => undefined,
    });
    stack.defer(() => running.stop());
    keepLogFile(provider, logOf(provider));
    await until(`${provider} is ready`, () => isReady(health));
    for (const object of await providerWebhooks(programs, provider, server)) {
      await client.create(webhookKind(object), object as NewObject<KubernetesObject>, { signal });
    }
  }
}

async function prepareWebhooks(provider: Provider, { dir, authority }: ManagementOptions) {
  const port = await freePort();
  const certificates = path.join(dir, `${provider}-certificates`);
  const { certPem, keyPem } = authority.issueServer({ dns: ['localhost'], ipv4: ['127.0.0.1'] });
  await mkdir(certificates, { recursive: true });
  await writeFile(path.join(certificates, 'tls.crt'), certPem);
  await writeFile(path.join(certificates, 'tls.key'), keyPem, { mode: 0o600 });
  const server: WebhookServer = { url: `https://127.0.0.1:${port}`, caPem: authority.caPem };
  return { provider, port, certificates, server };
}

async function defineKinds(
  client: ApiClient,
  definitions: readonly KubernetesObject[],
  signal: AbortSignal,
): Promise<void> {
  for (const definition of definitions) {
    await client.create(Definitions, definition, { signal });
  }
  await until('all kinds are served', async () => {
    const { items } = await client.list(CustomResourceDefinitions, { signal });
    const missing = items.filter(({ status }) => !conditionIsTrue(status?.conditions, 'Established'));
    return missing.length === 0 || missing.map(({ metadata }) => metadata.name).join(', ');
  });
}

function webhookKind(object: KubernetesObject): Kind<KubernetesObject> {
  const kind = WEBHOOK_KINDS.find((each) => each.kind === object.kind);
  if (kind === undefined) throw new Error(`webhooks: ${object.kind} ${object.metadata.name} configures none`);
  return kind;
}

async function isReady(health: string): Promise<boolean | string> {
  try {
    const response = await fetch(`http://${health}/readyz`);
    return response.ok || `HTTP ${response.status}: ${await response.text()}`;
  } catch (error) {
    return String(error);
  }
}
