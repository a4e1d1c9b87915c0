import { createPublicKey, X509Certificate } from 'node:crypto';
import type { ClusterImagePolicy, ImagePolicy, ImagePolicySpec } from '../../api/image-policies.ts';
import { by } from '../../api/order.ts';
import type { Problem, Validated } from '../problem.ts';
import type { ScopePolicies, SigstoreRequirement } from './policy-json.ts';
import type { RegistrySources } from './registry-sources.ts';
import { isScopeWithin } from './scopes.ts';

/** What images have to be signed by. */
export interface SignaturePolicies {
  /** Of every pull on a node. */
  readonly cluster: ScopePolicies;
  /** Of the pulls of a namespace's pods, besides. */
  readonly namespaces: ReadonlyMap<string, ScopePolicies>;
}

export interface ImagePolicyObjects {
  readonly clusterPolicies: readonly ClusterImagePolicy[];
  readonly namespacePolicies: readonly ImagePolicy[];
}

/**
 * Reads the signature policies of a cluster (MCO, container-runtime-config controller). What is wrong with a
 * ClusterImagePolicy stops the rendering. Anyone who may write a namespace's ImagePolicies can stop nothing, and let
 * nothing in: what doesn't count is left out, and what can't be read ends pulls of this namespace alone.
 *
 * @param sources scopes of signed images lie within the allowed registries, and outside of the blocked ones.
 * @returns the policies, with warnings of scopes of namespaces that don't count, and of what would end the pulls of a
 *   namespace or of older hosts.
 */
export function readImagePolicies(
  { clusterPolicies, namespacePolicies }: ImagePolicyObjects,
  sources: Sources,
): Validated<{ policies: SignaturePolicies; warnings: readonly Problem[] }> {
  const { cluster, problems, warnings: ofCluster } = readCluster(clusterPolicies, sources);
  if (problems.length > 0) return { ok: false, problems };
  const { namespaces, warnings } = readNamespaces(namespacePolicies, cluster, sources);
  return { ok: true, policies: { cluster, namespaces }, warnings: [...ofCluster, ...warnings] };
}

/**
 * Fields of `sigstoreSigned`, which is itself known since containers/image 5.22, by what reads them; the latest first.
 * An unknown field makes the whole of a policy invalid (containers-policy.json(5), "FORMAT").
 */
const LATER_FIELDS = [
  { field: 'pki', readBy: 'containers/image 5.34.1 or later (Podman 5.4.1, Skopeo 1.19, CRI-O 1.34)' },
  { field: 'fulcio', readBy: 'containers/image 5.24 or later (Podman 4.4, Skopeo 1.11, CRI-O 1.27)' },
  {
    field: 'rekorPublicKeyData',
    readBy: 'containers/image 5.24 or later (Podman 4.4, Skopeo 1.11, CRI-O 1.27)',
  },
] as const;

/**
 * Nothing reports the versions of a host's tools, and its node stays Ready without pulls: no rollout would stop.
 *
 * @param ended which pulls, where the file is refused.
 */
function needsLaterTools(requirement: SigstoreRequirement, at: string, ended: string): Problem[] {
  const later = LATER_FIELDS.find(({ field }) => requirement[field] !== undefined);
  if (later === undefined) return [];
  return [
    {
      path: `${at}, spec.policy.rootOfTrust`,
      reason: `needs the field ${later.field} of policy.json: older container tools refuse the whole file, which ends ${ended} on their nodes`,
      expected: `nodes whose container tools have ${later.readBy}`,
    },
  ];
}

type Sources = Pick<RegistrySources, 'allowed' | 'blocked'>;

function readCluster(policies: readonly ClusterImagePolicy[], sources: Sources) {
  const problems: Problem[] = [];
  const warnings: Problem[] = [];
  const cluster = new Map<string, SigstoreRequirement[]>();
  for (const { metadata, spec } of policies.toSorted(by((object) => object.metadata.name))) {
    const at = `ClusterImagePolicy ${metadata.name}`;
    problems.push(...unreadable(spec, at));
    const requirement = requirementOf(spec);
    if (requirement !== undefined) warnings.push(...needsLaterTools(requirement, at, 'all pulls'));
    for (const scope of spec.scopes) {
      const outside = outsideOf(scope, sources);
      if (outside !== undefined) problems.push({ path: `${at}, spec.scopes`, ...outside });
      if (requirement !== undefined) add(cluster, scope, requirement);
    }
  }
  return { cluster, problems, warnings };
}

function readNamespaces(policies: readonly ImagePolicy[], cluster: ScopePolicies, sources: Sources) {
  const warnings: Problem[] = [];
  const namespaces = new Map<string, Map<string, SigstoreRequirement[]>>();
  const nameOf = ({ metadata }: ImagePolicy) => `${metadata.namespace ?? 'default'}/${metadata.name}`;
  for (const policy of policies.toSorted(by(nameOf))) {
    const { metadata, spec } = policy;
    const at = `ImagePolicy ${nameOf(policy)}`;
    warnings.push(...unreadable(spec, at));
    const requirement = requirementOf(spec);
    if (requirement === undefined) continue;
    const left = spec.scopes.map((scope) => withinCluster(scope, cluster) ?? outsideOf(scope, sources));
    if (left.includes(undefined))
      warnings.push(...needsLaterTools(requirement, at, "all pulls of that namespace's pods"));
    for (const [index, scope] of spec.scopes.entries()) {
      const without = left[index];
      if (without !== undefined) {
        warnings.push({ path: `${at}, spec.scopes`, ...without });
        continue;
      }
      const namespace = metadata.namespace ?? 'default';
      const counting = namespaces.get(namespace) ?? new Map<string, SigstoreRequirement[]>();
      add(counting, scope, requirement);
      namespaces.set(namespace, counting);
    }
  }
  return { namespaces, warnings };
}

function withinCluster(scope: string, cluster: ScopePolicies): Omit<Problem, 'path'> | undefined {
  const outer = [...cluster.keys()].find((each) => isScopeWithin(scope, each));
  if (outer === undefined) return undefined;
  return {
    reason: `${quoted(scope)} has no effect, because it lies within ${quoted(outer)} of a ClusterImagePolicy`,
    expected: 'other scopes, or a narrower ClusterImagePolicy',
  };
}

function add(to: Map<string, SigstoreRequirement[]>, scope: string, requirement: SigstoreRequirement): void {
  to.set(scope, [...(to.get(scope) ?? []), requirement]);
}

const quoted = (text: string): string => JSON.stringify(text);

/** An entry for it would let in what the registries of the Image object don't: the most specific one alone counts. */
function outsideOf(scope: string, { allowed, blocked }: Sources): Omit<Problem, 'path'> | undefined {
  const within = blocked.find((each) => isScopeWithin(scope, each));
  if (within !== undefined) {
    return {
      reason: `${quoted(scope)} lies within ${quoted(within)}, a blocked registry`,
      expected: 'scopes outside of blockedRegistries of the Image cluster',
    };
  }
  if (allowed.length === 0 || allowed.some((each) => isScopeWithin(scope, each))) return undefined;
  return {
    reason: `${quoted(scope)} lies in no allowed registry`,
    expected: 'scopes within allowedRegistries of the Image cluster',
  };
}

/** @returns undefined where the root of trust that the policy names is missing. */
function requirementOf({ policy }: ImagePolicySpec): SigstoreRequirement | undefined {
  const { policyType, publicKey, fulcioCAWithRekor, pki } = policy.rootOfTrust;
  const signedIdentity = identityOf(policy.signedIdentity);
  if (signedIdentity === undefined) return undefined;
  switch (policyType) {
    case 'PublicKey': {
      if (publicKey === undefined) return undefined;
      const { keyData, rekorKeyData } = publicKey;
      return {
        type: 'sigstoreSigned',
        keyData,
        ...(rekorKeyData === undefined ? {} : { rekorPublicKeyData: rekorKeyData }),
        signedIdentity,
      };
    }
    case 'FulcioCAWithRekor': {
      if (fulcioCAWithRekor === undefined) return undefined;
      const { fulcioCAData, fulcioSubject, rekorKeyData } = fulcioCAWithRekor;
      const { oidcIssuer, signedEmail } = fulcioSubject;
      return {
        type: 'sigstoreSigned',
        fulcio: { caData: fulcioCAData, oidcIssuer, subjectEmail: signedEmail },
        rekorPublicKeyData: rekorKeyData,
        signedIdentity,
      };
    }
    case 'PKI': {
      if (pki === undefined) return undefined;
      const { caRootsData, caIntermediatesData, pkiCertificateSubject } = pki;
      const { email, hostname } = pkiCertificateSubject;
      return {
        type: 'sigstoreSigned',
        pki: {
          caRootsData,
          ...(caIntermediatesData === undefined ? {} : { caIntermediatesData }),
          ...(email === undefined ? {} : { subjectEmail: email }),
          ...(hostname === undefined ? {} : { subjectHostname: hostname }),
        },
        signedIdentity,
      };
    }
  }
}

function identityOf(
  given: ImagePolicySpec['policy']['signedIdentity'],
): SigstoreRequirement['signedIdentity'] | undefined {
  switch (given?.matchPolicy) {
    case undefined:
    case 'MatchRepoDigestOrExact':
      return { type: 'matchRepoDigestOrExact' };
    case 'MatchRepository':
      return { type: 'matchRepository' };
    case 'ExactRepository':
      return given.exactRepository === undefined
        ? undefined
        : { type: 'exactRepository', dockerRepository: given.exactRepository.repository };
    case 'RemapIdentity':
      return given.remapIdentity === undefined
        ? undefined
        : { type: 'remapIdentity', ...given.remapIdentity };
  }
}

/** @returns what of a policy no image can be verified by: every pull from its scopes would fail. */
function unreadable(spec: ImagePolicySpec, at: string): Problem[] {
  const { publicKey, fulcioCAWithRekor, pki, policyType } = spec.policy.rootOfTrust;
  const root = `${at}, spec.policy.rootOfTrust`;
  const keys = {
    'publicKey.keyData': publicKey?.keyData,
    'publicKey.rekorKeyData': publicKey?.rekorKeyData,
    'fulcioCAWithRekor.rekorKeyData': fulcioCAWithRekor?.rekorKeyData,
  };
  const certificates = {
    'fulcioCAWithRekor.fulcioCAData': fulcioCAWithRekor?.fulcioCAData,
    'pki.caRootsData': pki?.caRootsData,
    'pki.caIntermediatesData': pki?.caIntermediatesData,
  };
  return [
    ...(requirementOf(spec) === undefined
      ? [
          {
            path: `${at}, spec.policy`,
            reason: `has no settings for ${policyType} or for its matchPolicy`,
            expected: 'the section of that name',
          },
        ]
      : []),
    ...unlike(root, keys, 'a public key as PEM in base64', readPublicKey),
    ...unlike(root, certificates, 'certificates as PEM in base64', (text) => new X509Certificate(text)),
    ...(pki !== undefined && Object.keys(pki.pkiCertificateSubject).length === 0
      ? [
          {
            path: `${root}.pki.pkiCertificateSubject`,
            reason: 'names no subject',
            expected: 'email or hostname',
          },
        ]
      : []),
  ];
}

/** A private key or a certificate contains a public key, but is not accepted as one. */
function readPublicKey(text: string): void {
  if (!text.startsWith('-----BEGIN PUBLIC KEY-----')) throw new TypeError('no public key');
  createPublicKey(text);
}

function unlike(
  root: string,
  fields: Readonly<Record<string, string | undefined>>,
  expected: string,
  read: (pem: string) => unknown,
): Problem[] {
  return Object.entries(fields).flatMap(([field, value]) => {
    if (value === undefined) return [];
    try {
      read(Buffer.from(value, 'base64').toString('utf8'));
      return [];
    } catch {
      return [
        {
          path: `${root}.${field}`,
          reason: "can't be read, and would end all pulls from its scopes",
          expected,
        },
      ];
    }
  });
}
