import { z } from 'zod';

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
const Requirements = z
  .array(
    z.discriminatedUnion('type', [
      z.strictObject({ type: z.enum(['insecureAcceptAnything', 'reject']) }),
      Sigstore,
    ]),
  )
  .nonempty('a list of requirements must not be empty');
const Scopes = z.record(z.string(), Requirements);
const Policy = z.strictObject({
  default: Requirements,
  transports: z
    .looseObject({
      atomic: z.record(z.string().regex(ATOMIC_SCOPE, 'is no scope of the transport atomic'), Requirements),
    })
    .catchall(Scopes),
});

/** @returns whether the transport `atomic` has such a scope. */
export function isAtomicScope(scope: string): boolean {
  return ATOMIC_SCOPE.test(scope);
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
