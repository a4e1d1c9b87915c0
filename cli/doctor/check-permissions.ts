import { Deployments, ServiceAccounts } from '../../api/kubernetes.ts';
import {
  BUILDER_DEPLOYMENT,
  BUILDS_NAMESPACE,
  OPERATOR_DEPLOYMENT,
  PAGE_DEPLOYMENT,
} from '../../api/names.ts';
import { isAllowed, type ResourceAttributes, type UserInfo } from '../../cluster/access-reviews.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { ApiError } from '../../cluster/api-client.ts';
import { unlessForbidden } from '../command-line/cluster-access.ts';
import type { Places } from '../observe/cluster-watch.ts';
import { type Finding, findings } from './finding.ts';

/** The namespaces in which processes need permissions. */
interface Scopes extends Places {
  /** Of the pods that run the commands of builds. */
  readonly buildsNamespace: string;
}

/** `verb resource[/subresource][.group]` and the scope: the cluster, or a namespace. */
type Need = readonly [what: string, where?: keyof Scopes];

const MCO = '.machineconfiguration.openshift.io';
const LEASES = 'leases.coordination.k8s.io';

/**
 * The essential permissions of each process; manifests/base/*-rbac.yaml and the live page's component grant these and
 * others.
 */
const NEEDS: Readonly<Record<string, readonly Need[]>> = {
  'shale-operator': [
    [`create machineconfigs${MCO}`],
    [`patch machineconfigpools${MCO}`],
    [`update machineconfigpools/status${MCO}`],
    [`create machineconfignodes${MCO}`],
    [`patch machineconfignodes${MCO}`],
    [`create machineosconfigs${MCO}`],
    [`delete machineosbuilds${MCO}`],
    ['create poolrevisions.shale.dev'],
    ['update machineconfigurations/status.operator.openshift.io'],
    ['patch nodes'],
    ['list pods'],
    ['create pods/eviction'],
    ['get configmaps', 'namespace'],
    ['create deployments.apps', 'namespace'],
    ['create serviceaccounts', 'namespace'],
    ['create rolebindings.rbac.authorization.k8s.io', 'namespace'],
    ['create clusterrolebindings.rbac.authorization.k8s.io'],
    [`update ${LEASES}`, 'namespace'],
    [`create ${LEASES}`, 'leaseNamespace'],
    [`delete ${LEASES}`, 'leaseNamespace'],
  ],
  'machine-os-builder': [
    [`watch machineosconfigs${MCO}`],
    [`create machineosbuilds${MCO}`],
    [`update machineosbuilds/status${MCO}`],
    ['get secrets', 'namespace'],
    ['create pods', 'buildsNamespace'],
    ['delete pods', 'buildsNamespace'],
    ['create secrets', 'buildsNamespace'],
    ['delete secrets', 'buildsNamespace'],
  ],
  'shale-daemon': [
    [`watch machineconfignodes${MCO}`],
    [`update machineconfignodes/status${MCO}`],
    [`get machineconfigs${MCO}`],
    [`get ${LEASES}`, 'leaseNamespace'],
  ],
  'shale-page': [
    [`watch machineconfigpools${MCO}`],
    [`watch machineconfignodes${MCO}`],
    [`watch machineosbuilds${MCO}`],
    ['watch machineconfigurations.operator.openshift.io'],
    ['watch nodes'],
    [`list machineconfigs${MCO}`],
    ['list poolrevisions.shale.dev'],
    ['create tokenreviews.authentication.k8s.io'],
    ['create subjectaccessreviews.authorization.k8s.io'],
    [`watch ${LEASES}`, 'leaseNamespace'],
  ],
};

/**
 * Deployments that not every installation has, with what grants their permissions: the operator grants the builder's.
 */
const OPTIONAL: Readonly<Record<string, string>> = {
  [BUILDER_DEPLOYMENT]: 'kubectl apply -k manifests/base',
  [PAGE_DEPLOYMENT]: 'kubectl apply -f manifests/components/live-page/rbac.yaml',
};

/** What the user needs for commands that write. */
const OWN_NEEDS: Readonly<Record<string, readonly Need[]>> = {
  'shale enable and disable': [
    ['create configmaps', 'namespace'],
    ['patch configmaps', 'namespace'],
  ],
  'shale maintenance': [['patch nodes'], ['create pods/eviction'], [`create ${LEASES}`, 'leaseNamespace']],
  'shale rollback': [[`patch machineconfigpools${MCO}`]],
  'shale repair and retry': [
    [`patch machineconfignodes${MCO}`],
    ['get nodes'],
    [`get machineconfigpools${MCO}`],
    [`get ${LEASES}`, 'leaseNamespace'],
  ],
};

/** Checks the permissions of the processes' service accounts and of the user. @throws {ApiError} */
export async function checkPermissions(
  client: ApiClient,
  { namespace, leaseNamespace }: Places,
  signal: AbortSignal,
): Promise<Finding[]> {
  const places: Scopes = { namespace, leaseNamespace, buildsNamespace: BUILDS_NAMESPACE };
  const processes = Object.entries(NEEDS).map(([account, needs]) =>
    checkAccount({ client, places, signal }, account, needs),
  );
  const own = Object.entries(OWN_NEEDS).map(async ([commands, needs]): Promise<Finding[]> => {
    const refused = await refusedOf(
      needs,
      (attributes) => isAllowed(client, attributes, undefined, signal),
      places,
    );
    if (refused.length === 0) return [];
    const { warning } = findings('your permissions');
    return [
      warning(
        `you are not allowed to ${refused.join(', ')}`,
        `required by ${commands}: ask an administrator`,
      ),
    ];
  });
  return (await Promise.all([...processes, ...own])).flat();
}

/** Of manifests/components/machine-health-checks. */
export const PATCH_MACHINES = 'patch machines.cluster.x-k8s.io';

/**
 * @param what as a need of a process is written.
 * @returns whether the operator is allowed to; false where the user may not ask. @throws {ApiError}
 */
export async function operatorMay(
  client: ApiClient,
  { namespace, leaseNamespace }: Places,
  what: string,
  signal: AbortSignal,
): Promise<boolean> {
  const places: Scopes = { namespace, leaseNamespace, buildsNamespace: BUILDS_NAMESPACE };
  const user = userOf(namespace, OPERATOR_DEPLOYMENT);
  return (await unlessForbidden(isAllowed(client, attributesOf([what], places), user, signal))) === true;
}

/** A process's service account has its name. */
function userOf(namespace: string, account: string): UserInfo {
  return {
    username: `system:serviceaccount:${namespace}:${account}`,
    groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
  };
}

interface Asking {
  readonly client: ApiClient;
  readonly places: Scopes;
  readonly signal: AbortSignal;
}

async function checkAccount(
  { client, places, signal }: Asking,
  account: string,
  needs: readonly Need[],
): Promise<Finding[]> {
  const { ok, warning, failure } = findings('permissions');
  const { namespace } = places;
  const isOptional = account in OPTIONAL;
  if (isOptional && (await client.find(Deployments, account, { namespace, signal })) === undefined) return [];
  const fix = OPTIONAL[account] ?? 'kubectl apply -k manifests/base';
  if ((await client.find(ServiceAccounts, account, { namespace, signal })) === undefined) {
    return [failure(`ServiceAccount ${namespace}/${account} does not exist`, fix)];
  }
  const user = userOf(namespace, account);
  try {
    const refused = await refusedOf(
      needs,
      (attributes) => isAllowed(client, attributes, user, signal),
      places,
    );
    return refused.length === 0
      ? [ok(`${account} has the permissions that it needs`)]
      : [failure(`${account} is not allowed to ${refused.join(', ')}`, fix)];
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 403) throw error;
    const can = 'ask an administrator who is allowed to create subjectaccessreviews.authorization.k8s.io';
    return [warning(`the permissions of ${account} can't be checked: ${error.message}`, can)];
  }
}

async function refusedOf(
  needs: readonly Need[],
  isGranted: (attributes: ResourceAttributes) => Promise<boolean>,
  places: Scopes,
): Promise<string[]> {
  const answers = await Promise.all(needs.map((need) => isGranted(attributesOf(need, places))));
  return needs.flatMap(([what, where], index) =>
    answers[index] === true ? [] : [where === undefined ? what : `${what} in ${places[where]}`],
  );
}

function attributesOf([what, where]: Need, places: Scopes): ResourceAttributes {
  const [verb = '', full = ''] = what.split(' ');
  const [path = '', ...group] = full.split('.');
  const [resource = '', subresource] = path.split('/');
  return { verb, group: group.join('.'), resource, subresource, namespace: where && places[where] };
}
