import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { parseAllDocuments } from 'yaml';
import type { KubernetesObject } from '../../api/object.ts';
import type { Provider } from './given-programs.ts';

/** How the API server reaches the webhooks of a provider's process on this machine. */
export interface WebhookServer {
  readonly url: string;
  readonly caPem: string;
}

/** By which Cluster API's kustomizations mark the versions that speak a contract (config/crd/kustomization.yaml). */
const CONTRACT_LABELS = { 'cluster.x-k8s.io/v1beta1': 'v1beta1', 'cluster.x-k8s.io/v1beta2': 'v1beta2' };

interface Definition extends KubernetesObject {
  readonly spec: { readonly versions: readonly unknown[] };
}

interface WebhookConfiguration extends KubernetesObject {
  readonly webhooks: readonly {
    readonly name: string;
    readonly clientConfig: { readonly service: { readonly path: string } };
  }[];
}

/** @returns a provider's kinds, converted by its webhook as its kustomization has it. */
export async function providerDefinitions(
  directory: string,
  provider: Provider,
  server: WebhookServer,
): Promise<readonly KubernetesObject[]> {
  const folder = path.join(directory, 'crds', provider);
  const files = (await readdir(folder)).filter((name) => name.endsWith('.yaml')).toSorted();
  const documents = await Promise.all(files.map((name) => readDocuments(path.join(folder, name))));
  return (documents.flat() as Definition[]).map((definition) => convertedBy(definition, server));
}

function convertedBy({ metadata, spec, ...rest }: Definition, server: WebhookServer): KubernetesObject {
  const labels = { ...metadata.labels, ...CONTRACT_LABELS };
  const conversion = {
    strategy: 'Webhook',
    webhook: { conversionReviewVersions: ['v1'], clientConfig: clientConfig(server, '/convert') },
  };
  const converted = spec.versions.length > 1 ? { ...spec, conversion } : spec;
  return { ...rest, metadata: { ...metadata, labels }, spec: converted } as KubernetesObject;
}

/** @returns a provider's webhook configurations, with the URL instead of a Service, under names of their own. */
export async function providerWebhooks(
  directory: string,
  provider: Provider,
  server: WebhookServer,
): Promise<readonly KubernetesObject[]> {
  const documents = await readDocuments(path.join(directory, 'webhooks', `${provider}.yaml`));
  return (documents as WebhookConfiguration[]).map(({ metadata, webhooks, ...rest }) => ({
    ...rest,
    metadata: { name: `${provider}-${metadata.name}` },
    webhooks: webhooks.map((webhook) => ({
      ...webhook,
      clientConfig: clientConfig(server, webhook.clientConfig.service.path),
    })),
  }));
}

function clientConfig({ url, caPem }: WebhookServer, at: string) {
  return { url: `${url}${at}`, caBundle: Buffer.from(caPem).toString('base64') };
}

async function readDocuments(file: string): Promise<readonly KubernetesObject[]> {
  const documents = parseAllDocuments(await readFile(file, 'utf8'));
  return documents
    .map((document) => document.toJS() as KubernetesObject | null)
    .filter((object) => object !== null);
}
