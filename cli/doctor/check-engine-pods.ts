import {
  type Deployment,
  type Namespace,
  Namespaces,
  type Node,
  type Taint,
  ValidatingAdmissionPolicies,
  ValidatingAdmissionPolicyBindings,
} from '../../api/kubernetes.ts';
import { BUILDS_NAMESPACE } from '../../api/names.ts';
import { isStartupTaint } from '../../api/startup-taint.ts';
import { type ApiClient, ApiError } from '../../cluster/api-client.ts';
import type { ObservedCluster } from '../../view/observed-cluster.ts';
import { type Finding, findings, found } from './finding.ts';
import { flagValues, hasFlag } from './operator-flags.ts';

/** Of the policy and of its binding (manifests/base/build-pods-admission.yaml). */
const POLICY = 'shale-build-pods';
const ENFORCE = 'pod-security.kubernetes.io/enforce';
/** Permits pods without a user namespace (manifests/base/build-pods-admission.yaml). */
const HOST_USERS = 'shale.dev/host-users';
const CONTROL_PLANE = 'node-role.kubernetes.io/control-plane';
const OS = 'kubernetes.io/os';
const INSTALL = 'kubectl apply -k manifests/base';

/** What the pods of builds need of a cluster. */
export interface EnginePodFacts {
  readonly namespace: Namespace | undefined;
  /** Whether the policy exists and is bound. */
  readonly isLimited: boolean;
}

/**
 * Checks that the builder can have a container engine in a pod (`--engine pod` of the operator, its default), as far as
 * the API server shows it.
 *
 * @returns nothing if the operator is configured with another engine, or none.
 */
export async function checkEnginePods(
  client: ApiClient,
  cluster: Pick<ObservedCluster, 'operator' | 'nodes'>,
  signal: AbortSignal,
): Promise<Finding[]> {
  if (!usesPods(cluster.operator)) return [];
  try {
    const [namespace, policy, bound] = await Promise.all([
      client.find(Namespaces, BUILDS_NAMESPACE, { signal }),
      client.find(ValidatingAdmissionPolicies, POLICY, { signal }),
      client.find(ValidatingAdmissionPolicyBindings, POLICY, { signal }),
    ]);
    return judgeEnginePods({ namespace, isLimited: policy !== undefined && bound !== undefined }, cluster);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 403) throw error;
    const { warning } = findings('pods of builds');
    return [
      warning(
        `what the pods of builds need can't be checked: ${error.message}`,
        'ask an administrator who is allowed to read namespaces and validatingadmissionpolicies.admissionregistration.k8s.io',
      ),
    ];
  }
}

/** @returns what prevents pods of builds, or makes them unsafe; one finding that all is well otherwise. */
export function judgeEnginePods(
  { namespace, isLimited }: EnginePodFacts,
  { operator, nodes }: Pick<ObservedCluster, 'operator' | 'nodes'>,
): Finding[] {
  const { ok, warning, failure } = findings('pods of builds');
  const level = namespace?.metadata.labels?.[ENFORCE];
  const suitable = nodes.filter(takesPods);
  const problems = found(
    namespace === undefined &&
      failure(
        `Namespace ${BUILDS_NAMESPACE} does not exist, so the Machine OS Builder is not started`,
        INSTALL,
      ),
    namespace !== undefined &&
      level !== 'privileged' &&
      warning(
        `Namespace ${BUILDS_NAMESPACE} has ${level === undefined ? 'no label' : `the label ${ENFORCE}: ${level} instead of`} ${ENFORCE}: privileged, so Pod Security may reject the pods of builds`,
        INSTALL,
      ),
    namespace !== undefined &&
      !needsUserNamespaces(operator) &&
      namespace.metadata.labels?.[HOST_USERS] !== 'allowed' &&
      failure(
        `the operator has --engine-host-users, but Namespace ${BUILDS_NAMESPACE} lacks the label ${HOST_USERS}=allowed, so that the policy rejects the pods of builds`,
        `kubectl label namespace ${BUILDS_NAMESPACE} ${HOST_USERS}=allowed`,
      ),
    !isLimited &&
      warning(
        `ValidatingAdmissionPolicy ${POLICY} or its binding does not exist: the builder's token could create any pod in ${BUILDS_NAMESPACE}`,
        INSTALL,
      ),
    nodes.length > 0 &&
      suitable.length === 0 &&
      warning(
        'no node takes the pods of builds: each has a taint that they do not tolerate, or another operating system than Linux',
        `remove a taint, or run an engine elsewhere (--engine, docs/engine.md); of a node in service they tolerate only ${CONTROL_PLANE}:NoSchedule`,
      ),
    needsUserNamespaces(operator) &&
      suitable.length > 0 &&
      suitable.every(lacksUserNamespaces) &&
      warning(
        'the container runtime of no node supports user namespaces for pods (status.runtimeHandlers)',
        "upgrade the nodes' container runtime, or set --engine-host-users in the operator's Deployment (docs/engine.md)",
      ),
  );
  return problems.length === 0
    ? [ok(`Namespace ${BUILDS_NAMESPACE}, its policy and a node for the pods of builds are there`)]
    : problems;
}

/** Without an operator the other findings say what to install. */
function usesPods(operator: Deployment | undefined): boolean {
  if (operator === undefined) return false;
  const [engine = 'pod'] = flagValues(operator, '--engine');
  return engine === 'pod';
}

function needsUserNamespaces(operator: Deployment | undefined): boolean {
  return !hasFlag(operator, '--engine-host-users');
}

/** What the pod's node selector and tolerations allow (builder/engine/pod/engine-pod.ts). */
function takesPods({ metadata, spec }: Node): boolean {
  const { [OS]: os = 'linux' } = metadata.labels ?? {};
  const taints = (spec?.taints ?? []).filter(
    (taint) => taint.effect !== 'PreferNoSchedule' && !(isTolerated(taint) && taint.effect === 'NoSchedule'),
  );
  return os === 'linux' && spec?.unschedulable !== true && taints.length === 0;
}

function isTolerated(taint: Taint): boolean {
  return taint.key === CONTROL_PLANE || isStartupTaint(taint);
}

/**
 * A node that reports no runtime handlers says nothing about it (Kubernetes before 1.30, or its feature gate is off).
 */
function lacksUserNamespaces({ status }: Node): boolean {
  // The default handler has no name.
  const handler = status?.runtimeHandlers?.find(({ name = '' }) => name === '');
  return handler !== undefined && handler.features?.userNamespaces !== true;
}
