import type { User } from '../identity/user.ts';
import type { JsonObject } from '../json.ts';
import type { Resource } from '../resources/resource.ts';
import type { ResourceRegistry } from '../resources/resource-registry.ts';
import type { Store } from '../store/store.ts';
import type { StoredObject } from '../stored-object.ts';

/** A write as admission sees it (admission.k8s.io AdmissionRequest). */
export interface AdmissionRequest {
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE';
  readonly resource: Resource;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  readonly user: User;
  readonly object?: JsonObject;
  readonly oldObject?: StoredObject;
  /** Is told what whoever writes should know, though it is let through. */
  readonly warn?: ((message: string) => void) | undefined;
}

/** What writes work on. */
export interface ObjectContext {
  readonly store: Store;
  readonly resources: ResourceRegistry;
  /** @throws StatusError for a write that a policy denies. */
  readonly admit: (request: AdmissionRequest) => Promise<void>;
  readonly now: () => Date;
}

/** Who writes, and whether it is only tried. */
export interface Writer {
  readonly user: User;
  /** dryRun=All: everything is checked and nothing kept. */
  readonly dryRun: boolean;
  readonly warn?: (message: string) => void;
}

/** The API server's own controllers write as this. */
export const SYSTEM: Writer = {
  user: { name: 'system:apiserver', groups: ['system:masters', 'system:authenticated'], extra: {} },
  dryRun: false,
};
