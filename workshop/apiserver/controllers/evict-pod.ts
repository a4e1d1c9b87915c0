import { isObject, type JsonObject, stringAt } from '../json.ts';
import { deleteObject, parseDeleteOptions } from '../objects/delete-object.ts';
import type { ObjectContext, Writer } from '../objects/object-metadata.ts';
import { requireObject } from '../objects/update-object.ts';
import { builtinResource } from '../resources/builtin.ts';
import { bucketOf } from '../resources/resource.ts';
import { StatusError, success } from '../status.ts';
import type { StoredObject } from '../stored-object.ts';
import { budgetStatus, covers, isHealthy, replicasByUid } from './disruption-budgets.ts';

const PODS = builtinResource('', 'pods');
const BUDGETS = builtinResource('policy', 'poddisruptionbudgets');

/**
 * Evicts a pod: deletes it if its PodDisruptionBudget lets it go (Kubernetes, "API-initiated Eviction").
 *
 * @param body a policy/v1 Eviction.
 * @throws StatusError 404, 429 when a budget forbids it now, 500 when several budgets are for the pod.
 */
export async function evictPod(
  context: ObjectContext,
  namespace: string,
  name: string,
  body: JsonObject,
  writer: Writer,
): Promise<JsonObject> {
  const pod = requireObject(context, { resource: PODS, namespace, name });
  if (!needsNoBudget(pod)) checkBudgets(context, pod);
  // Either may ask for a dry run (eviction.go, propagateDryRun).
  const options = isObject(body['deleteOptions']) ? body['deleteOptions'] : {};
  await deleteObject(
    context,
    { resource: PODS, namespace, name },
    parseDeleteOptions(options, new URLSearchParams()),
    writer,
  );
  return success(undefined, 201);
}

/** Such a pod does no work that a budget protects (eviction.go, canIgnorePDB). */
function needsNoBudget(pod: StoredObject): boolean {
  const phase = stringAt(pod, 'status', 'phase');
  return phase !== 'Running' || pod.metadata.deletionTimestamp !== undefined;
}

function checkBudgets(context: ObjectContext, pod: StoredObject): void {
  const budgets = context.store.list(bucketOf(BUDGETS)).filter((budget) => covers(budget, pod));
  const [budget, ...more] = budgets;
  if (budget === undefined) return;
  if (more.length > 0) {
    throw new StatusError(
      500,
      'InternalError',
      'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.',
    );
  }
  const status = budgetStatus(budget, context.store.list(bucketOf(PODS)), scales(context));
  if (!isHealthy(pod) && mayGoUnhealthy(budget, status)) return;
  if (status.disruptionsAllowed > 0) return;
  const { name } = budget.metadata;
  throw new StatusError(
    429,
    'TooManyRequests',
    "Cannot evict pod as it would violate the pod's disruption budget.",
    {
      causes: [
        {
          reason: 'DisruptionBudget',
          message: `The disruption budget ${name} needs ${status.desiredHealthy} healthy pods and has ${status.currentHealthy} currently`,
        },
      ],
    },
  );
}

const CONTROLLERS = ['deployments', 'replicasets'].map((plural) => builtinResource('apps', plural));

/** @returns how many pods each controller of the cluster is to have. */
export function scales({ store }: ObjectContext): (controller: string) => number | undefined {
  return replicasByUid(CONTROLLERS.flatMap((resource) => store.list(bucketOf(resource))));
}

/** spec.unhealthyPodEvictionPolicy: by default unhealthy pods go only while enough others are healthy. */
function mayGoUnhealthy(
  budget: StoredObject,
  status: { readonly currentHealthy: number; readonly desiredHealthy: number },
): boolean {
  if (stringAt(budget, 'spec', 'unhealthyPodEvictionPolicy') === 'AlwaysAllow') return true;
  return status.currentHealthy >= status.desiredHealthy && status.desiredHealthy > 0;
}
