import { clusterKind, type Kind, type KubernetesObject } from './object.ts';

/**
 * Settings of a whole OpenShift cluster that concern nodes and that Shale doesn't have. It installs none of these
 * kinds: they exist where a part of OpenShift's API does.
 */
export interface OpenShiftSettings extends KubernetesObject {
  readonly spec?: Readonly<Record<string, unknown>>;
}

/** The object `cluster` with settings of all nodes; not core's Node. */
export const NodeSettings = clusterKind<OpenShiftSettings>('config.openshift.io/v1', 'Node');

/** The kind of {@link CredentialProviderSettings}, in every version. */
export const CREDENTIAL_PROVIDER_KIND = 'CRIOCredentialProviderConfig';

/** The only name of these objects. */
export const OPENSHIFT_SETTINGS = 'cluster';

/** Versions of the object `cluster` that says for which images pods' own pull secrets count, the newest first. */
export const CredentialProviderSettings: readonly Kind<OpenShiftSettings>[] = ['v1', 'v1alpha1'].map(
  (version) => clusterKind(`config.openshift.io/${version}`, CREDENTIAL_PROVIDER_KIND),
);
