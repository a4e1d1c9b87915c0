import {
  type Deployment,
  ValidatingAdmissionPolicies,
  ValidatingAdmissionPolicyBindings,
} from '../../api/kubernetes.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { readAll, unlessForbidden } from '../command-line/cluster-access.ts';
import { type Finding, findings } from './finding.ts';

/**
 * The policies of the base, each with its binding of the same name, and what is open without it. Who updates Shale by
 * its image alone has those of the version before. That of the pods of builds is check-engine-pods.ts's.
 */
export const BASE_POLICIES: Readonly<Record<string, string>> = {
  'shale-daemon-own-node': 'the token of a daemon can write the status of every node',
  'shale-daemon-own-events': 'the token of a daemon can write Events about every object',
  'machine-os-builder-own-lease': "the builder's token can take the operator's lease",
  'machine-os-builder-own-events': "the builder's token can write Events about every object",
  'shale-rendered-configs': 'anyone who may write MachineConfigs can forge what the operator renders',
  'shale-pool-settings': 'a misspelt setting of a pool is stored without a warning',
  'shale-signing-keys':
    'anyone who may write ConfigMaps in the namespace can add a key that nodes accept images by',
  'shale-pushed-images':
    'anyone who may write ConfigMaps in the namespace can have images deleted from the registry',
  'shale-machine-os-config-secrets':
    'anyone who may write a MachineOSConfig can have every Secret of the namespace used, and take the repository of another pool',
  'shale-held-nodes': 'a user who cordons, uncordons or deletes a node that Shale has cordoned is not warned',
  'shale-updating-nodes': 'a user who cordons a node that Shale is about to update is not warned',
  'shale-maintained-nodes': 'a user who creates a NodeMaintenance of a node that Shale updates is not warned',
  'shale-skipped-nodes': 'a user who changes a configuration is not warned of nodes that the rollout skips',
  'shale-resumed-pools': 'a user who resumes a pool is not warned of nodes that its rollout skips',
  'shale-machine-os-builds': 'anyone who may write MachineOSBuilds can have images deleted from the registry',
};

/**
 * Checks that the API server enforces the limits that Shale relies on. Without an operator the other findings say what
 * to install.
 */
export async function checkPolicies(
  client: ApiClient,
  operator: Deployment | undefined,
  signal: AbortSignal,
): Promise<Finding[]> {
  if (operator === undefined) return [];
  const [policies, bindings] = await Promise.all([
    unlessForbidden(readAll(client, ValidatingAdmissionPolicies, { signal })),
    unlessForbidden(readAll(client, ValidatingAdmissionPolicyBindings, { signal })),
  ]);
  const namesOf = (objects: readonly { readonly metadata: { readonly name: string } }[] | undefined) =>
    objects && new Set(objects.map(({ metadata }) => metadata.name));
  return judgePolicies(namesOf(policies), namesOf(bindings));
}

/** @param policies names of those that there are, and of their bindings; undefined where the user may not read them. */
export function judgePolicies(
  policies: ReadonlySet<string> | undefined,
  bindings: ReadonlySet<string> | undefined,
): Finding[] {
  const { ok, warning } = findings('admission policies');
  if (policies === undefined || bindings === undefined)
    return [
      warning(
        'they can’t be checked without permission to list them',
        'ask an administrator who may list validatingadmissionpolicies and their bindings',
      ),
    ];
  const names = Object.entries(BASE_POLICIES);
  const missing = names.filter(([name]) => !policies.has(name) || !bindings.has(name));
  return missing.length === 0
    ? [ok(`the ${names.length} policies of the base are installed`)]
    : missing.map(([name, open]) =>
        warning(
          `ValidatingAdmissionPolicy ${name} or its binding does not exist: ${open}`,
          'kubectl apply -k manifests/base',
        ),
      );
}
