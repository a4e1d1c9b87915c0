import { z } from 'zod';
import type { Reference } from '../../../image/reference.ts';

/** Who has to have signed an image: one of these keys. */
interface RequiredSignature {
  readonly keys: readonly PolicyKey[];
}

/** Where a public key stands. */
export type PolicyKey =
  | { readonly kind: 'file'; readonly path: string }
  /** In PEM. */
  | { readonly kind: 'text'; readonly pem: string };

/** What a host's policy says of an image. */
export type PolicyDecision =
  /** It may be staged once all of these signatures are found beside it; none: at once. */
  | { readonly kind: 'allow'; readonly signatures: readonly RequiredSignature[] }
  /** `why`: continues a sentence of which the image is the subject. */
  | { readonly kind: 'reject'; readonly why: string };

/** Unknown fields make a policy invalid (containers-policy.json(5), "FORMAT"): what they ask for can't be obeyed. */
const Identity = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('matchExact') }),
  z.strictObject({ type: z.literal('matchRepoDigestOrExact') }),
  z.strictObject({ type: z.literal('matchRepository') }),
  z.strictObject({ type: z.literal('exactReference'), dockerReference: z.string() }),
  z.strictObject({ type: z.literal('exactRepository'), dockerRepository: z.string() }),
  z.strictObject({ type: z.literal('remapIdentity'), prefix: z.string(), signedPrefix: z.string() }),
]);
const Requirement = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('insecureAcceptAnything') }),
  z.strictObject({ type: z.literal('reject') }),
  // Whatever they ask for, it is refused below.
  z.looseObject({ type: z.literal('signedBy') }),
  z.looseObject({ type: z.literal('signedBaseLayer') }),
  z.strictObject({
    type: z.literal('sigstoreSigned'),
    keyPath: z.string().exactOptional(),
    keyPaths: z.array(z.string()).min(1).exactOptional(),
    keyData: z.base64().exactOptional(),
    keyDatas: z.array(z.base64()).min(1).exactOptional(),
    fulcio: z.unknown().exactOptional(),
    pki: z.unknown().exactOptional(),
    rekorPublicKeyPath: z.unknown().exactOptional(),
    rekorPublicKeyPaths: z.unknown().exactOptional(),
    rekorPublicKeyData: z.unknown().exactOptional(),
    rekorPublicKeyDatas: z.unknown().exactOptional(),
    signedIdentity: Identity.exactOptional(),
  }),
]);
type Requirement = z.infer<typeof Requirement>;
type Sigstore = Extract<Requirement, { type: 'sigstoreSigned' }>;

const Requirements = z.array(Requirement).min(1);
const Policy = z.strictObject({
  default: Requirements,
  transports: z.record(z.string(), z.record(z.string(), Requirements)).exactOptional(),
});

/** Where the policy is on a host. */
export const POLICY_FILE = '/etc/containers/policy.json';

/**
 * Decides by a host's signature policy whether an image may be staged, as containers/image does for a pull by digest
 * (containers-policy.json(5)): the requirements of the most specific scope alone count, and all of them.
 *
 * What Shale can't check is rejected, never taken for granted: GPG signatures, certificates of Fulcio, entries of a
 * transparency log, and identities other than the image's own repository.
 *
 * @param text of the policy; undefined where the host has none.
 */
export function evaluatePolicy(text: string | undefined, image: Reference): PolicyDecision {
  if (text === undefined) return { kind: 'allow', signatures: [] };
  const policy = parsePolicy(text);
  if (policy === undefined) {
    return rejected(
      `can't be checked, because ${POLICY_FILE} is not a valid policy (containers-policy.json(5))`,
    );
  }
  const { scope, requirements } = mostSpecific(policy, image);
  const signatures: RequiredSignature[] = [];
  for (const requirement of requirements) {
    const decision = decideRequirement(requirement);
    if (decision.kind === 'reject') return rejected(`${decision.why} (${POLICY_FILE}, ${scope})`);
    signatures.push(...decision.signatures);
  }
  return { kind: 'allow', signatures };
}

function parsePolicy(text: string): z.infer<typeof Policy> | undefined {
  try {
    return Policy.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

interface ScopedRequirements {
  /** As text, for a message. */
  readonly scope: string;
  readonly requirements: readonly Requirement[];
}

/** @returns whether a text is a policy as containers-policy.json(5) describes it. */
export function isPolicy(text: string): boolean {
  return parsePolicy(text) !== undefined;
}

/**
 * @param text of a valid policy. @returns the requirements that hold for an image or a repository.
 * @throws TypeError for any other text.
 */
export function requirementsFor(text: string, image: Reference): ScopedRequirements {
  const policy = parsePolicy(text);
  if (policy === undefined) throw new TypeError(`${POLICY_FILE} is not a valid policy`);
  return mostSpecific(policy, image);
}

function mostSpecific(policy: z.infer<typeof Policy>, image: Reference): ScopedRequirements {
  const docker = new Map(Object.entries(policy.transports?.['docker'] ?? {}));
  for (const scope of scopesOf(image)) {
    const requirements = docker.get(scope);
    if (requirements !== undefined) return { scope: `scope ${scope || '"" of docker'}`, requirements };
  }
  return { scope: 'default', requirements: policy.default };
}

/**
 * @returns the scopes of transport docker that an image is in, the most specific first: the image, its repository and
 *   what that is in, its host, the host's domains as wildcards without a port, and the transport's default
 *   (containers/image, docker/policyconfiguration).
 */
export function scopesOf({ registry, repository, digest }: Reference): readonly string[] {
  const parts = repository.split('/');
  const name = `${registry}/${repository}`;
  const parents = parts.map((_, index) => [registry, ...parts.slice(0, parts.length - index)].join('/'));
  const labels = registry.replace(/:\d+$/, '').split('.');
  const domains = labels.slice(1).map((_, index) => `*.${labels.slice(index + 1).join('.')}`);
  return [...(digest === undefined ? [] : [`${name}@${digest}`]), ...parents, registry, ...domains, ''];
}

function decideRequirement(requirement: Requirement): PolicyDecision {
  switch (requirement.type) {
    case 'insecureAcceptAnything':
      return { kind: 'allow', signatures: [] };
    case 'reject':
      return rejected("is rejected by the node's signature policy");
    case 'signedBy':
      return rejected('needs a GPG signature (signedBy), which Shale does not verify');
    case 'signedBaseLayer':
      return rejected('needs a signed base layer (signedBaseLayer), which Shale does not verify');
    case 'sigstoreSigned':
      return decideSigstore(requirement);
  }
}

function decideSigstore(requirement: Sigstore): PolicyDecision {
  const { keyPath, keyPaths, keyData, keyDatas, signedIdentity, type: _type, ...rest } = requirement;
  const [other] = Object.keys(rest);
  if (other !== undefined) return rejected(`needs a signature by ${other}, which Shale does not verify`);
  const given = [keyPath, keyPaths, keyData, keyDatas].filter((each) => each !== undefined);
  if (given.length !== 1) {
    return rejected('needs a sigstore signature by exactly one of keyPath, keyPaths, keyData and keyDatas');
  }
  // The image is named by digest: a signature of it under any tag of its repository is one of this image.
  const identity = signedIdentity?.type ?? 'matchRepoDigestOrExact';
  if (identity !== 'matchRepoDigestOrExact' && identity !== 'matchRepository') {
    return rejected(
      `needs a signature whose signedIdentity is ${identity}; for images by digest Shale verifies matchRepoDigestOrExact and matchRepository`,
    );
  }
  const files = [...(keyPaths ?? []), ...(keyPath === undefined ? [] : [keyPath])];
  const texts = [...(keyDatas ?? []), ...(keyData === undefined ? [] : [keyData])];
  const keys: PolicyKey[] = [
    ...files.map((path) => ({ kind: 'file' as const, path })),
    ...texts.map((data) => ({ kind: 'text' as const, pem: Buffer.from(data, 'base64').toString('utf8') })),
  ];
  return { kind: 'allow', signatures: [{ keys }] };
}

function rejected(why: string): PolicyDecision {
  return { kind: 'reject', why };
}
