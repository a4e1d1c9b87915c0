/** The group and version of the hooks (kubernetes-sigs/cluster-api, api/runtime/hooks/v1alpha1). */
export const HOOKS_API_VERSION = 'hooks.runtime.cluster.x-k8s.io/v1alpha1';

/** The hooks of updates in place. */
export const HOOKS = ['CanUpdateMachine', 'CanUpdateMachineSet', 'UpdateMachine'] as const;
export type Hook = (typeof HOOKS)[number];

/** s that Cluster API waits for an answer: its own default. */
const TIMEOUT_SECONDS = 10;

/** The path of the call by which Cluster API learns which hooks are served. */
export const DISCOVERY_PATH = `/${HOOKS_API_VERSION}/discovery`;

/** @returns the name of a hook's handler, an RFC 1123 label. */
function handlerName(hook: Hook): string {
  return hook.replace(/(?<=[a-z])(?=[A-Z])/g, '-').toLowerCase();
}

/** @returns the path at which Cluster API calls a hook's handler (GVHToPath in api/runtime/catalog). */
export function pathOf(hook: Hook): string {
  return `/${HOOKS_API_VERSION}/${hook.toLowerCase()}/${handlerName(hook)}`;
}

/** @returns the answer to discovery. A hook that can't be asked stops changes, as the answer "not known" does. */
export function discoveryResponse() {
  return {
    apiVersion: HOOKS_API_VERSION,
    kind: 'DiscoveryResponse',
    status: 'Success',
    handlers: HOOKS.map((hook) => ({
      name: handlerName(hook),
      requestHook: { apiVersion: HOOKS_API_VERSION, hook },
      timeoutSeconds: TIMEOUT_SECONDS,
      failurePolicy: 'Fail',
    })),
  } as const;
}
