import { type JsonObject, stringAt, stringsAt } from '../json.ts';
import { builtinResource } from '../resources/builtin.ts';
import { bucketOf } from '../resources/resource.ts';
import { badRequest, notFound } from '../status.ts';
import { keyOf, type Store } from '../store/store.ts';
import { timestamp } from '../stored-object.ts';
import { newClaims, type ObjectIdentity, signToken } from './service-account-tokens.ts';

/** Answers authentication.k8s.io TokenRequests. @throws StatusError 400, 404. */
export type TokenIssuer = (namespace: string, name: string, request: JsonObject) => JsonObject;

const ACCOUNTS = builtinResource('', 'serviceaccounts');
const NODES = builtinResource('', 'nodes');
const PODS = builtinResource('', 'pods');

/** Seconds; a client that asks for nothing gets an hour, none gets less than ten minutes (TokenRequestSpec). */
const DEFAULT_LIFETIME = 3600;
const MIN_LIFETIME = 600;
const AUDIENCE = 'https://kubernetes.default.svc';

/** @param key signs the tokens. */
export function tokenIssuer(store: Store, key: Buffer, now: () => Date): TokenIssuer {
  return (namespace, name, request) => {
    const account = store.get(bucketOf(ACCOUNTS), keyOf(namespace, name));
    if (account === undefined) throw notFound(ACCOUNTS, name);
    const audiences = stringsAt(request, 'spec', 'audiences');
    const lifetime = lifetimeOf(request);
    const time = now();
    const token = signToken(
      newClaims(
        {
          namespace,
          serviceAccount: { name, uid: account.metadata.uid },
          ...boundTo(store, namespace, request),
        },
        audiences.length === 0 ? [AUDIENCE] : audiences,
        time,
        lifetime,
      ),
      key,
    );
    return {
      kind: 'TokenRequest',
      apiVersion: 'authentication.k8s.io/v1',
      metadata: { name, namespace, creationTimestamp: timestamp(time) },
      spec: { audiences: audiences.length === 0 ? [AUDIENCE] : audiences, expirationSeconds: lifetime },
      status: { token, expirationTimestamp: timestamp(new Date(time.getTime() + lifetime * 1000)) },
    };
  };
}

function lifetimeOf(request: JsonObject): number {
  const seconds = (request['spec'] as JsonObject | undefined)?.['expirationSeconds'];
  if (seconds === undefined) return DEFAULT_LIFETIME;
  if (typeof seconds === 'number' && seconds >= MIN_LIFETIME) return seconds;
  throw badRequest(
    `spec.expirationSeconds: Invalid value: ${String(seconds)}: may not specify a duration less than 10 minutes`,
  );
}

/** A token of a pod also says on which node the pod is; one bound to a node says that node (KEP-4193). */
function boundTo(
  store: Store,
  namespace: string,
  request: JsonObject,
): { readonly pod?: ObjectIdentity; readonly node?: ObjectIdentity } {
  const kind = stringAt(request, 'spec', 'boundObjectRef', 'kind');
  const name = stringAt(request, 'spec', 'boundObjectRef', 'name') ?? '';
  if (kind === undefined) return {};
  if (kind === 'Node') return { node: identityOfNode(store, name) };
  if (kind !== 'Pod')
    throw badRequest(`cannot bind token to object of type ${kind}: only Pod and Node are offered here`);
  const pod = store.get(bucketOf(PODS), keyOf(namespace, name));
  if (pod === undefined) throw notFound(PODS, name);
  const node = stringAt(pod, 'spec', 'nodeName');
  return {
    pod: { name, uid: pod.metadata.uid },
    ...(node === undefined ? {} : { node: identityOfNode(store, node) }),
  };
}

function identityOfNode(store: Store, name: string): ObjectIdentity {
  const node = store.get(bucketOf(NODES), name);
  if (node === undefined) throw notFound(NODES, name);
  return { name, uid: node.metadata.uid };
}
