import { z } from 'zod';

/**
 * Scopes of the `atomic` transport: a host, a namespace and an image with its tag (openshift/openshift_transport.go).
 */
const ATOMIC_SCOPE = /^[^/]*(\/[^:/]*(\/[^:/]*(:[^:/]*)?)?)?$/;

const Requirements = z
  .array(z.strictObject({ type: z.enum(['insecureAcceptAnything', 'reject']) }))
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
