import { z } from 'zod';
import { LabelSelector } from './label-selector.ts';
import { Conditions, clusterKind, type KubernetesObject, MCO_V1, ObservedGeneration } from './object.ts';

/** Which pools a KubeletConfig or ContainerRuntimeConfig is for. */
export const machineConfigPoolSelector = LabelSelector.exactOptional().describe(
  'Selects pools by their labels. Without a selector, or with an empty one, no pool is selected.',
);

const profile = z.object({}).nullable().exactOptional();

/** The TLS profiles of config.openshift.io/v1. */
const TlsSecurityProfile = z.object({
  type: z
    .enum(['Old', 'Intermediate', 'Modern', 'Custom'])
    .exactOptional()
    .describe('The profile. Defaults to Intermediate.'),
  old: profile.describe('Has no fields: type alone selects the profile.'),
  intermediate: profile.describe('Has no fields: type alone selects the profile.'),
  modern: profile.describe('Has no fields: type alone selects the profile.'),
  custom: z
    .object({
      ciphers: z.array(z.string()).exactOptional().describe('Cipher suites, by their names in OpenSSL.'),
      minTLSVersion: z
        .enum(['VersionTLS10', 'VersionTLS11', 'VersionTLS12', 'VersionTLS13'])
        .exactOptional()
        .describe('The lowest TLS version that clients may use.'),
      groups: z
        .array(
          z.enum([
            'X25519',
            'secp256r1',
            'secp384r1',
            'secp521r1',
            'X25519MLKEM768',
            'SecP256r1MLKEM768',
            'SecP384r1MLKEM1024',
          ]),
        )
        .min(1)
        .max(7)
        .meta({ 'x-kubernetes-list-type': 'set' })
        .exactOptional()
        .describe('Not supported: the kubelet chooses the groups of its key exchange.'),
    })
    .nullable()
    .exactOptional()
    .describe('The settings of the type Custom.'),
});
export type TlsSecurityProfile = z.infer<typeof TlsSecurityProfile>;

export const KubeletConfigSpec = z.object({
  machineConfigPoolSelector,
  kubeletConfig: z
    .looseObject({})
    .exactOptional()
    .describe(
      "Fields of the kubelet's KubeletConfiguration (kubelet.config.k8s.io/v1beta1). They override the host's own file field by field.",
    ),
  logLevel: z
    .int()
    .min(0)
    .max(10)
    .exactOptional()
    .describe('Verbosity of the kubelet’s logs: logging.verbosity of its configuration.'),
  tlsSecurityProfile: TlsSecurityProfile.exactOptional().describe(
    'TLS settings of the kubelet’s server: tlsMinVersion and tlsCipherSuites, where kubeletConfig does not set them.',
  ),
  autoSizingReserved: z
    .boolean()
    .exactOptional()
    .describe(
      'Only false is supported: no part of the host computes systemReserved from the capacity of a node. Set systemReserved instead.',
    ),
  systemGomaxprocsBehavior: z
    .enum(['Autosize', 'Disabled'])
    .exactOptional()
    .describe('Only Disabled is supported: a service of OpenShift’s hosts computes GOMAXPROCS.'),
});
export type KubeletConfigSpec = z.infer<typeof KubeletConfigSpec>;

export const ServiceConfigStatus = z.object({
  observedGeneration: ObservedGeneration.exactOptional(),
  conditions: Conditions.exactOptional(),
});
export type ServiceConfigStatus = z.infer<typeof ServiceConfigStatus>;

/** Settings of the kubelets of some pools. */
export interface KubeletConfig extends KubernetesObject {
  readonly spec: KubeletConfigSpec;
  readonly status?: ServiceConfigStatus;
}

export const KubeletConfigs = clusterKind<KubeletConfig>(MCO_V1, 'KubeletConfig');

/** Condition types of a KubeletConfig or ContainerRuntimeConfig; Success and Failure are MCO's. */
export type ServiceConfigConditionType = 'Warning' | 'Success' | 'Failure';

/**
 * What a condition of these kinds means when it is True, in Markdown; docs/reference/conditions.md is generated from
 * it.
 */
export const serviceConfigConditions: Readonly<Record<ServiceConfigConditionType, string>> = {
  Warning:
    'fields of the object may have no effect; the message names them. An object without any has no such condition',
  Success:
    'MachineConfigs were generated for every selected pool; the message names them. There is either this condition or Failure',
  Failure:
    'the object is not in effect for at least one pool; the message says why. MachineConfigs that were generated from its last valid version stay',
};
