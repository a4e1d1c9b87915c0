/**
 * A part of a machine that Shale can change in place: one file, `ntp`, the SSH keys of a user, the version of
 * Kubernetes or the image.
 */
export type PartName =
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'ntp' }
  | { readonly kind: 'keys'; readonly user: string }
  | { readonly kind: 'version' }
  | { readonly kind: 'image' };

/** A part's name as text, which is unique: `file /etc/chrony.conf`, `ntp`, `keys core`, `version`, `image`. */
export type PartKey = string & { readonly __brand: 'PartKey' };

/** @returns the key of a part, for sets and messages. */
export function partKey(part: PartName): PartKey {
  switch (part.kind) {
    case 'file':
      return `file ${part.path}` as PartKey;
    case 'keys':
      return `keys ${part.user}` as PartKey;
    case 'ntp':
    case 'version':
    case 'image':
      return part.kind as PartKey;
  }
}

/** What Shale can write, or why it can't: only a change to the latter is refused. */
export type Writable<T> =
  | { readonly kind: 'writable'; readonly value: T }
  /** `raw`: canonical JSON of what the object has, so that it can be compared. */
  | { readonly kind: 'refused'; readonly raw: string; readonly why: string };

/** A file as it is on the machine. */
export interface MachineFile {
  readonly path: string;
  /** Permission bits. */
  readonly mode: number;
  /** Names of the owners. */
  readonly user: string;
  readonly group: string;
  /** The decoded content in base64. */
  readonly content: string;
}

/** The desired state of a machine, by its parts. A pure function of its objects and the settings. */
export interface MachineParts {
  /** `spec.version` of the Machine, `v1.35.1`; undefined where it has none. */
  readonly version: string | undefined;
  /** By path. */
  readonly files: ReadonlyMap<string, Writable<MachineFile>>;
  /** The file that `ntp` stands for; undefined where the machine has no `ntp`. */
  readonly ntp: Writable<MachineFile> | undefined;
  /** Authorized keys of the node user; empty where the machine has no such user, or one without keys. */
  readonly keys: ReadonlyMap<string, Writable<readonly string[]>>;
  /** The reference that the image field stands for, as an osImageURL; undefined where there is no image field. */
  readonly image: Writable<string> | undefined;
  /** Everything else: canonical JSON by the name of the field that a message has. A change here is a new machine. */
  readonly rest: ReadonlyMap<string, string>;
}

/** A change that needs a new machine. */
export interface RefusedChange {
  /** Such as `KubeadmConfig spec.files[/etc/motd]`. */
  readonly field: string;
  /** A clause such as `its content comes from a Secret, and no secret may be in an image`. */
  readonly why: string;
}

/** What differs between the current and the desired state of a machine. */
export interface PartChanges {
  readonly taken: readonly PartName[];
  /** With one or more of these, machines are replaced, and nothing is done in place. */
  readonly refused: readonly RefusedChange[];
}
