import { randomBytes } from 'node:crypto';
import { crdDefinitions } from '../../api/crd-definitions.ts';
import { errorMessage } from '../../api/error-message.ts';
import {
  ConfigMaps,
  CustomResourceDefinitions,
  DaemonSets,
  Deployments,
  Events,
  type KubernetesEvent,
  Leases,
  Nodes,
  type Pod,
  Pods,
  Secrets,
  ServiceAccounts,
} from '../../api/kubernetes.ts';
import { type MachineConfigNode, MachineConfigNodes } from '../../api/machine-config-node.ts';
import { REGISTRY_CAS_CONFIG_MAP, SWITCH_CONFIG_MAP } from '../../api/names.ts';
import type { Kind, KubernetesObject } from '../../api/object.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { yamlText } from '../command-line/print-as.ts';
import type { Places } from '../observe/cluster-watch.ts';
import {
  type BundleFile,
  type Collected,
  collectJournals,
  collectLogs,
  type LogSource,
  nodesInQuestion,
} from './collect-logs.ts';
import { knownSecrets } from './known-secrets.ts';
import { Redaction } from './redact.ts';

interface Collecting extends LogSource {
  readonly client: ApiClient;
  /** Names of nodes to read the journals of; absent: those that don't run their target. */
  readonly nodes?: readonly string[] | undefined;
}

interface Part {
  readonly kind: Kind<KubernetesObject>;
  readonly namespace?: string;
  readonly keep?: (object: KubernetesObject) => boolean;
}

/** The namespace of Events about cluster-scoped objects. */
const CLUSTER_EVENTS = 'default';

/**
 * Reads everything that a bug report needs. What can't be read becomes a problem and doesn't stop the others.
 *
 * @returns what was collected, and what removes secrets from what else goes into the archive.
 */
export async function collect(
  collecting: Collecting,
): Promise<Collected & { readonly redaction: Redaction }> {
  const { namespace } = collecting.places;
  const parts = await Promise.all(partsOf(collecting.places).map((part) => collectPart(collecting, part)));
  const objects = parts.flatMap((part) => part.objects);
  const pods = objects.filter(
    (object): object is Pod => object.kind === 'Pod' && object.metadata.namespace === namespace,
  );
  const logs = await Promise.all(pods.flatMap((pod) => collectLogs(collecting, pod)));
  const nodes = collecting.nodes ?? nodesInQuestion(objects.filter(isMachineConfigNode));
  const journals = await Promise.all(
    nodes.map((node) => collectJournals(collecting.connection, node, collecting.signal)),
  );
  const texts = [...logs, ...journals];
  const redaction = new Redaction(randomBytes(32), knownSecrets(objects));
  return {
    redaction,
    files: [
      ...parts.flatMap((part) => filesOf(part, redaction)),
      ...texts.flatMap(({ files }) => files).map(({ name, text }) => ({ name, text: redaction.text(text) })),
    ],
    problems: [...parts, ...texts]
      .flatMap(({ problems }) => problems)
      .map((problem) => redaction.text(problem)),
  };
}

function isMachineConfigNode(object: KubernetesObject): object is MachineConfigNode {
  return object.kind === MachineConfigNodes.kind;
}

function partsOf({ namespace, leaseNamespace }: Places): readonly Part[] {
  const ours = new Set(crdDefinitions.map(({ kind }) => kind.kind));
  const configMaps = [SWITCH_CONFIG_MAP, REGISTRY_CAS_CONFIG_MAP];
  const isShales = ({ metadata }: KubernetesObject) =>
    crdDefinitions.some(({ kind }) => `${kind.plural}.${kind.group}` === metadata.name);
  const isAboutUs = (event: KubernetesObject) => {
    const about =
      (event as { readonly involvedObject?: { readonly kind?: string } }).involvedObject?.kind ?? '';
    return about === 'Node' || ours.has(about);
  };
  return [
    ...crdDefinitions.map(({ kind }) => ({ kind })),
    { kind: CustomResourceDefinitions, keep: isShales },
    { kind: Nodes },
    { kind: Deployments, namespace },
    { kind: DaemonSets, namespace },
    { kind: Pods, namespace },
    { kind: ServiceAccounts, namespace },
    { kind: Secrets, namespace },
    { kind: ConfigMaps, namespace, keep: ({ metadata }) => configMaps.includes(metadata.name) },
    { kind: Leases, namespace },
    { kind: Leases, namespace: leaseNamespace },
    { kind: Events, namespace },
    { kind: Events, namespace: CLUSTER_EVENTS, keep: isAboutUs },
  ];
}

interface CollectedPart extends Part {
  readonly objects: readonly KubernetesObject[];
  readonly problems: readonly string[];
}

async function collectPart({ client, signal }: Collecting, part: Part): Promise<CollectedPart> {
  const { kind, namespace, keep = () => true } = part;
  try {
    const { items } = await client.list(kind, { namespace, signal });
    return { ...part, objects: items.filter(keep), problems: [] };
  } catch (error) {
    signal.throwIfAborted();
    return { ...part, objects: [], problems: [`${resourceOf(kind)}: ${errorMessage(error)}`] };
  }
}

function filesOf(
  { kind, namespace, objects, problems }: CollectedPart,
  redaction: Redaction,
): readonly BundleFile[] {
  // What could not be read is no empty list.
  if (problems.length > 0) return [];
  if (kind.kind === Events.kind) {
    return [eventsFile(objects as readonly KubernetesEvent[], namespace ?? 'all', redaction)];
  }
  const folder = `objects/${resourceOf(kind)}${namespace === undefined ? '' : `/${namespace}`}`;
  return objects.map((object) => ({
    name: `${folder}/${object.metadata.name}.yaml`,
    text: yamlText(redaction.object(object)),
  }));
}

const resourceOf = ({ group, plural }: Kind<KubernetesObject>): string =>
  group === '' ? plural : `${plural}.${group}`;

/** One list of all events, oldest first, is easier to read than hundreds of files. */
function eventsFile(events: readonly KubernetesEvent[], namespace: string, redaction: Redaction): BundleFile {
  const lines = events.map(({ involvedObject, type, reason, message, count = 1, lastTimestamp = '' }) => {
    const { kind, name } = involvedObject;
    return `${lastTimestamp} ${type} ${reason} ${kind}/${name} (${count}): ${message.replaceAll('\n', ' ')}\n`;
  });
  return { name: `events/${namespace}.txt`, text: redaction.text(lines.toSorted().join('')) };
}
