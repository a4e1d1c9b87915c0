import { formatActions } from '../../api/disruption-action.ts';
import { errorMessage } from '../../api/error-message.ts';
import { ConfigMaps, Secrets } from '../../api/kubernetes.ts';
import { MachineConfigurations } from '../../api/machine-configuration.ts';
import {
  KUBELET_CA_CONFIG_MAP,
  MACHINE_CONFIGURATION,
  NODE_PULL_SECRET,
  REGISTRY_CAS_CONFIG_MAP,
} from '../../api/names.ts';
import type { CertificateName } from '../../api/node-certificates.ts';
import { policiesOfDigest } from '../../disruption/pool-policies.ts';
import {
  type CertificateFiles,
  kubeletCAFiles,
  pullSecretFiles,
  registryCAFiles,
} from '../host/certificates/certificate-files.ts';
import type { Delivery } from '../host/certificates/deliver.ts';
import { deliver, settleDelivery } from '../host/certificates/deliver.ts';
import { pathsOfConfigs } from '../host/certificates/owned-paths.ts';
import { actOnServices, serviceActions } from './act-on-services.ts';
import { otherHolder } from './await-grant.ts';
import { configsOf, type Observation, type Withheld } from './step.ts';
import { recordEvent, recordWarning, type StepContext } from './step-context.ts';

/** For events and conditions. */
const IN_WORDS: Readonly<Record<CertificateName, string>> = {
  registryCAs: 'registry CAs',
  kubeletCA: 'kubelet CA',
  pullSecret: 'pull secret',
};

/** Something else has to change before it can be had. */
class NotNow extends Error {
  readonly reason: Withheld['reason'];

  constructor(reason: Withheld['reason'], message: string) {
    super(message);
    this.reason = reason;
  }
}

/**
 * Brings one kind of certificate to the disk and has services told of it as the policies say: at any time, in any mode,
 * without a grant. A file that the node's own config has is the config's. What can't be done now is remembered and
 * told, and keeps nothing else from going on.
 *
 * @throws the signal's reason.
 */
export async function applyCertificate(
  context: StepContext,
  { name, version }: { readonly name: CertificateName; readonly version: string },
  observation: Observation,
): Promise<void> {
  const { memory, ports, signal } = context;
  const { metrics } = context.telemetry;
  const { root } = ports.host;
  const what = `${IN_WORDS[name]} ${version}`;
  try {
    const files = await notOwned(root, observation, await fetchFiles(context, name, version));
    const delivery = await deliver(root, name, { version, files });
    await ports.relabel(root, Object.keys(delivery.files), signal);
    const done = await notifyServices(context, delivery, observation);
    await settleDelivery(root, name, delivery);
    memory.withheld.delete(name);
    metrics.certificates(name, 'done');
    recordEvent(context, 'CertificatesApplied', `Applied ${what}${done}`);
  } catch (error) {
    signal.throwIfAborted();
    metrics.certificates(name, 'failed');
    const why = errorMessage(error);
    const reason = error instanceof NotNow ? error.reason : 'NotApplied';
    const reported = memory.withheld.get(name)?.why;
    const { heldBy } = observation.spec;
    memory.withheld.set(name, { version, under: configsOf(observation), heldBy, reason, why, isDue: false });
    if (reported !== why) recordWarning(context, 'CertificatesFailed', `Could not apply ${what}: ${why}`);
  }
}

async function fetchFiles(
  { client, settings: { namespace, certificatePaths }, signal }: StepContext,
  name: CertificateName,
  version: string,
): Promise<CertificateFiles> {
  const where = { namespace, signal };
  switch (name) {
    case 'registryCAs': {
      // Gone: the operator names the empty set.
      const { data = {} } = (await client.find(ConfigMaps, REGISTRY_CAS_CONFIG_MAP, where)) ?? {};
      return registryCAFiles(data, version);
    }
    case 'kubeletCA': {
      const { data = {} } = await client.get(ConfigMaps, KUBELET_CA_CONFIG_MAP, where);
      return kubeletCAFiles(data, version, certificatePaths.kubeletCA);
    }
    case 'pullSecret': {
      const secret = await client.get(Secrets, NODE_PULL_SECRET, where);
      return pullSecretFiles(secret, version, certificatePaths.pullSecret);
    }
  }
}

/** @returns the files that the node's config doesn't have. @throws NotNow when it has them all. */
async function notOwned(
  root: string,
  observation: Observation,
  files: CertificateFiles,
): Promise<CertificateFiles> {
  const owned = await pathsOfConfigs(root, observation);
  const left = new Map([...files].filter(([name]) => !owned.has(name)));
  if (left.size > 0 || files.size === 0) return left;
  const names = [...files.keys()].join(', ');
  throw new NotNow(
    'OwnedByMachineConfig',
    `${configsOf(observation)} already contains ${names}, which takes precedence; remove it from the MachineConfigs to use the cluster's`,
  );
}

/** @returns what was done, as text for an event. */
async function notifyServices(
  context: StepContext,
  { untold }: Delivery,
  { spec }: Observation,
): Promise<string> {
  if (untold.length === 0) return '';
  const { client, ports, signal } = context;
  const configuration = await client.find(MachineConfigurations, MACHINE_CONFIGURATION, { signal });
  const policies = policiesOfDigest(configuration?.status, spec.policyDigest);
  if (policies === undefined) return '';
  const actions = serviceActions(untold, policies);
  if (actions.length === 0) return '';
  const holder = await otherHolder(context, spec.grant?.leaseHolder ?? '');
  if (holder !== undefined) {
    throw new NotNow(
      'LeaseHeld',
      `${formatActions(actions)}: waiting for the node lease, which ${holder} holds`,
    );
  }
  await actOnServices({
    // Certificates take no unit away.
    withdrawn: new Set(),
    services: ports.services,
    actions,
    limits: context.settings.actionLimits,
    before: () => Promise.resolve(),
    signal,
  });
  return `; actions: ${formatActions(actions)}`;
}
