import { z } from 'zod';
import { imageNames } from '../oci/image-names.ts';
import { clusterKind, type KubernetesObject, namespacedKind } from './object.ts';

/** PEM, in base64. */
const pem = (what: string) =>
  z.string().max(8192).meta({ format: 'byte' }).describe(`${what}, as PEM in base64.`);

const rule = (field: string, discriminator: string, value: string) => ({
  rule: `self.${discriminator} == '${value}' ? has(self.${field}) : !has(self.${field})`,
  message: `${field} is required when ${discriminator} is ${value}, and forbidden otherwise`,
});

const RootOfTrust = z
  .object({
    policyType: z
      .enum(['PublicKey', 'FulcioCAWithRekor', 'PKI'])
      .describe('What a signature is verified by: a key, a certificate of Fulcio, or one of a PKI.'),
    publicKey: z
      .object({
        keyData: pem('The public key'),
        rekorKeyData: pem('The public key of Rekor, if signatures must be recorded there').exactOptional(),
      })
      .exactOptional()
      .describe('For PublicKey.'),
    fulcioCAWithRekor: z
      .object({
        fulcioCAData: pem('The certificate of the Fulcio CA'),
        rekorKeyData: pem('The public key of Rekor'),
        fulcioSubject: z.object({
          oidcIssuer: z.string().max(2048).describe('URL of the OIDC issuer that the certificate names.'),
          signedEmail: z.string().max(320).describe('The email address that the certificate is issued for.'),
        }),
      })
      .exactOptional()
      .describe('For FulcioCAWithRekor.'),
    pki: z
      .object({
        caRootsData: pem('The root certificates'),
        caIntermediatesData: pem('The intermediate certificates').exactOptional(),
        pkiCertificateSubject: z
          .object({
            email: z.string().max(320).exactOptional().describe('The email address of the certificate.'),
            hostname: z.string().max(253).exactOptional().describe('The host name of the certificate.'),
          })
          .meta({
            'x-kubernetes-validations': [
              {
                rule: 'has(self.email) || has(self.hostname)',
                message: 'at least one of email and hostname must be set',
              },
            ],
          }),
      })
      .exactOptional()
      .describe('For PKI.'),
  })
  .meta({
    'x-kubernetes-validations': [
      rule('publicKey', 'policyType', 'PublicKey'),
      rule('fulcioCAWithRekor', 'policyType', 'FulcioCAWithRekor'),
      rule('pki', 'policyType', 'PKI'),
    ],
  });

const identity = z
  .string()
  .max(512)
  .regex(imageNames.identity, { error: 'host[:port][/repository], the host with a dot or localhost' });

const SignedIdentity = z
  .object({
    matchPolicy: z
      .enum(['MatchRepoDigestOrExact', 'MatchRepository', 'ExactRepository', 'RemapIdentity'])
      .describe('How the name in the signature is compared with that of the image.'),
    exactRepository: z
      .object({ repository: identity.describe('The repository that signatures claim.') })
      .exactOptional()
      .describe('For ExactRepository.'),
    remapIdentity: z
      .object({
        prefix: identity.describe('What names of images begin with.'),
        signedPrefix: identity.describe('What the names in their signatures begin with instead.'),
      })
      .exactOptional()
      .describe('For RemapIdentity.'),
  })
  .meta({
    'x-kubernetes-validations': [
      rule('exactRepository', 'matchPolicy', 'ExactRepository'),
      rule('remapIdentity', 'matchPolicy', 'RemapIdentity'),
    ],
  });

export const ImagePolicySpec = z.object({
  scopes: z
    .array(
      z.string().max(512).regex(imageNames.policyScope, {
        error: 'host[:port][/repository][:tag][@digest], the host with a dot or localhost, or *.domain',
      }),
    )
    .max(256)
    .meta({ 'x-kubernetes-list-type': 'set' })
    .describe('Images that have to be signed: registries, namespaces, repositories or images.'),
  policy: z
    .object({
      rootOfTrust: RootOfTrust,
      signedIdentity: SignedIdentity.exactOptional().describe(
        'Which name a signature has to have. Defaults to MatchRepoDigestOrExact.',
      ),
    })
    .describe('What signatures have to be like.'),
});
export type ImagePolicySpec = z.infer<typeof ImagePolicySpec>;

/** Signatures that images need on every node (config.openshift.io/v1). */
export interface ClusterImagePolicy extends KubernetesObject {
  readonly spec: ImagePolicySpec;
}

/** Signatures that images of the pods of one namespace need. */
export interface ImagePolicy extends KubernetesObject {
  readonly spec: ImagePolicySpec;
}

export const ClusterImagePolicies = clusterKind<ClusterImagePolicy>(
  'config.openshift.io/v1',
  'ClusterImagePolicy',
);
export const ImagePolicies = namespacedKind<ImagePolicy>('config.openshift.io/v1', 'ImagePolicy');
