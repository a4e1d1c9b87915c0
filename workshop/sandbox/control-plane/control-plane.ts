import type { ClusterAccess } from './access.ts';

/** The API server of a sandbox, whichever it is. */
export interface ControlPlane {
  /** In words, for the person in front of it. */
  readonly description: string;
  /** Whether somebody keeps the status of disruption budgets and collects garbage (kube-controller-manager's part). */
  readonly hasControllers: boolean;
  /** As its administrator. */
  readonly access: ClusterAccess;
  /** How processes of the sandbox reach it. */
  readonly apiServer: { readonly host: string; readonly port: number; readonly caPem: string };
  /** @returns the text of a kubeconfig for its administrator. */
  kubeconfig(): string;
  /** @returns a token of a service account; bound to a node where one is named. */
  createToken(account: ServiceAccountOnNode): Promise<string>;
  stop(): Promise<void>;
}

export interface ServiceAccountOnNode {
  readonly namespace: string;
  readonly name: string;
  readonly node?: string;
}
