import { userInfo } from 'node:os';
import type { Kind, KubernetesObject } from '../api/object.ts';
import { type ApiClient, ApiError } from '../cluster/api-client.ts';

interface SelfSubjectReview extends KubernetesObject {
  readonly status?: { readonly userInfo?: { readonly username?: string } };
}

const SelfSubjectReviews: Kind<SelfSubjectReview> = {
  group: 'authentication.k8s.io',
  version: 'v1',
  kind: 'SelfSubjectReview',
  plural: 'selfsubjectreviews',
  namespaced: false,
};

/** @returns the user that the cluster takes the caller for; where it can't be asked, the one of this machine. */
export async function whoAmI(client: ApiClient, signal: AbortSignal): Promise<string> {
  const question = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview', metadata: {} };
  try {
    const { status } = await client.create(SelfSubjectReviews, question, { signal });
    return status?.userInfo?.username ?? userInfo().username;
  } catch (error) {
    // Kubernetes has it since 1.28, and an admin may have taken it away.
    if (error instanceof ApiError && (error.status === 403 || error.status === 404))
      return userInfo().username;
    throw error;
  }
}
