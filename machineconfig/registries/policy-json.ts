import { z } from 'zod';
import { by } from '../../api/order.ts';
import type { RegistrySources } from './registry-sources.ts';

/**
 * Scopes of the `atomic` transport: a host, a namespace and an image with its tag (openshift/openshift_transport.go).
 */
const ATOMIC_SCOPE = /^[^/]*(\/[^:/]*(\/[^:/]*(:[^:/]*)?)?)?$/;

const data = z.base64().min(1);
const Sigstore = z
  .strictObject({
    type: z.literal('sigstoreSigned'),
    keyData: data.exactOptional(),
    fulcio: z
      .strictObject({ caData: data, oidcIssuer: z.string(), subjectEmail: z.string() })
      .exactOptional(),
    rekorPublicKeyData: data.exactOptional(),
    pki: z
      .strictObject({
        caRootsData: data,
        caIntermediatesData: data.exactOptional(),
        subjectEmail: z.string().exactOptional(),
        subjectHostname: z.string().exactOptional(),
      })
      .exactOptional(),
    signedIdentity: z.discriminatedUnion('type', [
      z.strictObject({ type: z.enum(['matchRepoDigestOrExact', 'matchRepository']) }),
      z.strictObject({ type: z.literal('exactRepository'), dockerRepository: z.string() }),
      z.strictObject({ type: z.literal('remapIdentity'), prefix: z.string(), signedPrefix: z.string() }),
    ]),
  })
  .refine(
    ({ keyData, fulcio, pki }) => [keyData, fulcio, pki].filter((each) => each !== undefined).length === 1,
    'needs exactly one of keyData, fulcio and pki',
  );
/** A requirement that images are signed (containers-policy.json(5), sigstoreSigned), in its order of fields. */
export type SigstoreRequirement = z.infer<typeof Sigstore>;
/** Requirements by scope. */
export type ScopePolicies = ReadonlyMap<string, readonly SigstoreRequirement[]>;

const Requirement = z.discriminatedUnion('type', [
  z.strictObject({ type: z.enum(['insecureAcceptAnything', 'reject']) }),
  Sigstore,
]);
type Requirement = z.infer<typeof Requirement>;
const Requirements = z.array(Requirement).nonempty('a list of requirements must not be empty');
const Scopes = z.record(z.string(), Requirements);
const Policy = z.strictObject({
  default: Requirements,
  transports: z
    .looseObject({
      atomic: z.record(z.string().regex(ATOMIC_SCOPE, 'is no scope of the transport atomic'), Requirements),
    })
    .catchall(Scopes),
});

const reject: readonly Requirement[] = [{ type: 'reject' }];
const accept: readonly Requirement[] = [{ type: 'insecureAcceptAnything' }];

/** The transport `atomic` takes no scope of three or more segments behind the registry (MCO, updatePolicyJSON). */
const ATOMIC_SEGMENTS = 3;

/**
 * Writes a policy.json (containers-policy.json(5)): blocked scopes are rejected, or everything but the allowed ones is,
 * and images that a policy covers need its signatures.
 *
 * @param namespace what the pods of one namespace need besides; absent: for every pull.
 * @returns the file's text; undefined where nothing of it is asked for, and the distribution's own file stays.
 */
export function formatPolicyJson(
  { blocked, allowed }: Pick<RegistrySources, 'blocked' | 'allowed'>,
  cluster: ScopePolicies,
  namespace: ScopePolicies = new Map(),
): string | undefined {
  if (blocked.length + allowed.length + cluster.size + namespace.size === 0) return undefined;
  const scopes = new Map<string, readonly Requirement[]>([
    ...allowed.map((scope) => [scope, accept] as const),
    ...blocked.map((scope) => [scope, reject] as const),
  ]);
  // What is allowed unsigned is not what a ClusterImagePolicy has signed; a namespace's policy asks for more of it.
  for (const [scope, requirements] of cluster) scopes.set(scope, requirements);
  for (const [scope, requirements] of namespace)
    scopes.set(scope, [...(scopes.get(scope) ?? []), ...requirements]);
  const policy = {
    default: allowed.length > 0 ? reject : accept,
    transports: {
      atomic: sorted(
        scopes,
        (scope) => scope.split('/').length <= ATOMIC_SEGMENTS && ATOMIC_SCOPE.test(scope),
      ),
      docker: sorted(scopes, () => true),
      // Images of a local engine don't come from a registry.
      'docker-daemon': { '': accept },
    },
  };
  return `${JSON.stringify(policy, undefined, 2)}\n`;
}

function sorted(
  scopes: ReadonlyMap<string, readonly Requirement[]>,
  filter: (scope: string) => boolean,
): Record<string, readonly Requirement[]> {
  return Object.fromEntries([...scopes].filter(([scope]) => filter(scope)).sort(by(([scope]) => scope)));
}

/**
 * Reads a policy.json as the container runtime does (containers-policy.json(5); containers/image,
 * signature/policy_config.go): it takes no unknown field and no scope that its transport doesn't have. Of the
 * requirements it knows those that Shale writes.
 *
 * @returns what is refused first.
 */
export function readPolicyJson(
  text: string,
): { readonly ok: true } | { readonly ok: false; readonly why: string } {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { ok: false, why: 'is not JSON' };
  }
  const [issue] = Policy.safeParse(value).error?.issues ?? [];
  return issue === undefined ? { ok: true } : { ok: false, why: `${issue.path.join('.')}: ${issue.message}` };
}
