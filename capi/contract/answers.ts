/**
 * JSON merge patches (RFC 7386) from the current to the desired objects of a machine, as text. Their `spec` is that of
 * the object that the request had: of a template or of a machine. Absent: the object stays as it is.
 */
export interface ObjectPatches {
  readonly machine: string | undefined;
  readonly bootstrap: string | undefined;
  readonly infrastructure: string | undefined;
}

/** The answer to CanUpdateMachine and CanUpdateMachineSet. */
export type CanUpdateAnswer =
  | {
      readonly kind: 'inPlace';
      readonly patches: ObjectPatches;
      /** False: pods of the machine keep running, so that Cluster API starts without a spare machine. */
      readonly affectsAvailability: boolean;
      readonly message: string;
    }
  /** Cluster API replaces the machines. */
  | { readonly kind: 'newMachines'; readonly message: string }
  /** It isn't known now: Cluster API shows the message and asks again. It replaces nothing. */
  | { readonly kind: 'failure'; readonly message: string };

/** The answer to UpdateMachine. Messages have no times, no addresses and no secrets, so that they stay the same. */
export type UpdateMachineAnswer =
  | { readonly kind: 'done'; readonly message: string }
  | { readonly kind: 'inProgress'; readonly retryAfterSeconds: number; readonly message: string }
  /** Cluster API shows the message and asks again later. */
  | { readonly kind: 'failure'; readonly message: string };
