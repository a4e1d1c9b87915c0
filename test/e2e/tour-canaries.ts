import {
  ConfigMaps,
  DaemonSets,
  Deployments,
  Events,
  Leases,
  Namespaces,
  Nodes,
  PodDisruptionBudgets,
  Pods,
  type Secret,
  Secrets,
  ServiceAccounts,
} from '../../api/kubernetes.ts';
import { MachineConfigs } from '../../api/machine-config.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { MachineConfigurations } from '../../api/machine-configuration.ts';
import { MachineOSBuilds } from '../../api/machine-os-build.ts';
import { MachineOSConfigs } from '../../api/machine-os-config.ts';
import { DEFAULT_NAMESPACE, labels, NODE_PULL_SECRET, PAGE_TLS_SECRET } from '../../api/names.ts';
import type { Kind, KubernetesObject } from '../../api/object.ts';
import { PoolRevisions } from '../../api/pool-revision.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { createApiClient } from '../../cluster/http-api-client.ts';
import { connectWith } from '../../workshop/sandbox/control-plane.ts';
import { readRecord, sandboxLayout } from '../../workshop/sandbox/layout.ts';
import { createAuthority } from '../../x509/certificate.ts';
import {
  filesBelow,
  findNeedles,
  type Haystack,
  type Needles,
  needlesOf,
  needlesOfKey,
  newCanary,
  sampleProcesses,
} from './canaries.ts';

/** Every kind that the tour has objects of but Secrets. */
const KINDS: readonly Kind<KubernetesObject>[] = [
  ConfigMaps,
  DaemonSets,
  Deployments,
  Events,
  Leases,
  MachineConfigNodes,
  MachineConfigPools,
  MachineConfigs,
  MachineConfigurations,
  MachineOSBuilds,
  MachineOSConfigs,
  Namespaces,
  Nodes,
  PodDisruptionBudgets,
  Pods,
  PoolRevisions,
  ServiceAccounts,
];

export const TOUR_SECRETS = { pull: 'canary-pull', push: 'canary-push', build: 'canary-build' };

/** What came of the search. */
export interface CanaryFindings {
  /** `where: in which form`. */
  readonly found: readonly string[];
  /** Names of the Secrets whose content was searched for. */
  readonly secrets: readonly string[];
  readonly searched: Readonly<Record<'files' | 'objects' | 'processes', number>>;
  /** Every object that was searched, as text. */
  readonly objects: readonly string[];
}

/**
 * Puts a canary into every Secret that Shale reads, and looks for it, and for every private key that a Secret has,
 * wherever neither belongs: in logs, objects, the registry, arguments and environments.
 *
 * @param dir of the sandbox. @returns `plant` once it is up; `collect` after each step; `finish` while it is still up.
 */
export function tourCanaries(dir: string, signal: AbortSignal) {
  const layout = sandboxLayout(dir);
  const canary = newCanary();
  const needles = new Map<string, Buffer>(needlesOf('the canary', Buffer.from(canary)));
  const objects = new Map<string, Haystack>();
  const secrets = new Set<string>();
  const samples = sampleProcesses(process.pid);
  let work = Promise.resolve();

  const client = async () => {
    const record = await readRecord(layout);
    if (record === undefined) throw new Error(`${layout.record}: not found`);
    return createApiClient(await connectWith(record.access));
  };
  const add = (more: Needles) => {
    for (const [form, needle] of more) needles.set(form, needle);
  };

  async function collect(): Promise<void> {
    const api = await client();
    for (const { metadata, data = {} } of (await api.list(Secrets, { signal })).items) {
      secrets.add(metadata.name);
      for (const [key, value] of Object.entries(data)) {
        add(needlesOfKey(`${metadata.name}/${key}`, Buffer.from(value, 'base64').toString('utf8')));
      }
    }
    for (const kind of KINDS) {
      for (const object of (await api.list(kind, { signal })).items) {
        const text = JSON.stringify(object);
        const where = `${kind.kind} ${object.metadata.name}`;
        objects.set(`${where} ${text}`, { where, bytes: Buffer.from(text) });
      }
    }
  }

  const next = (act: () => Promise<void>) => {
    work = work.then(act);
    // Its failure is told by `finish`.
    work.catch(() => undefined);
  };
  return {
    plant: () => next(async () => plantSecrets(await client(), canary, signal)),
    collect: () => next(collect),
    async finish(): Promise<CanaryFindings> {
      const processes = samples.stop();
      await work;
      await collect();
      const found = findNeedles([...objects.values(), ...processes], needles);
      let files = 0;
      for (const directory of [layout.logs, layout.registry]) {
        for await (const file of filesBelow(directory)) {
          files += 1;
          found.push(...findNeedles([file], needles));
        }
      }
      const searched = { files, objects: objects.size, processes: processes.length };
      return { found, secrets: [...secrets], searched, objects: [...objects.keys()] };
    },
  };
}

async function plantSecrets(api: ApiClient, canary: string, signal: AbortSignal): Promise<void> {
  const { build, pull, push } = TOUR_SECRETS;
  const planted: readonly Secret[] = [
    credentials(NODE_PULL_SECRET, canary),
    credentials(pull, canary),
    credentials(push, canary),
    { ...opaque(build, canary), metadata: { name: build, labels: { [labels.usableInBuilds]: 'true' } } },
    opaque('canary-user', canary),
    pageCertificate(),
  ];
  for (const secret of planted) await api.create(Secrets, secret, { namespace: DEFAULT_NAMESPACE, signal });
}

/** @returns a Secret for a registry that nobody asks. */
function credentials(name: string, canary: string): Secret {
  const password = `${canary}-${name}`;
  const auth = Buffer.from(`${name}:${password}`).toString('base64');
  const auths = { [`${name}.example.com`]: { username: name, password, auth } };
  const data = { '.dockerconfigjson': Buffer.from(JSON.stringify({ auths })).toString('base64') };
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name },
    type: 'kubernetes.io/dockerconfigjson',
    data,
  };
}

function opaque(name: string, canary: string): Secret {
  const data = { token: Buffer.from(`${canary}-${name}`).toString('base64') };
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name }, type: 'Opaque', data };
}

/** @returns the Secret of the live page; its private key is what is looked for. */
function pageCertificate(): Secret {
  const issued = createAuthority('page', new Date()).issueServer({ dns: ['shale-page'], ipv4: [] });
  const data = Object.fromEntries(
    Object.entries({ 'tls.crt': issued.certPem, 'tls.key': issued.keyPem }).map(([key, pem]) => [
      key,
      Buffer.from(pem).toString('base64'),
    ]),
  );
  const metadata = { name: PAGE_TLS_SECRET };
  return { apiVersion: 'v1', kind: 'Secret', metadata, type: 'kubernetes.io/tls', data };
}
