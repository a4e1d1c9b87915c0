import type { DisruptionAction } from '../api/disruption-action.ts';
/**
 * A rendered MachineConfig in terms of a node's disk: contents decoded, defaults filled in, lists turned into maps by
 * the identity of entries. Everything after rendering (diff, actions, image layer, the daemon) works on this value, so
 * that a re-encoded data URL is not a change.
 */
export interface NodeConfig {
  /** Name of the rendered MachineConfig. */
  readonly name: string;
  /** By absolute path. */
  readonly files: ReadonlyMap<string, NodeFile>;
  readonly directories: ReadonlyMap<string, NodeDirectory>;
  readonly links: ReadonlyMap<string, NodeLink>;
  /** By unit name, with suffix. */
  readonly units: ReadonlyMap<string, NodeUnit>;
  /** Authorized keys by user, in first-seen order; a user without keys is not listed. */
  readonly sshKeys: ReadonlyMap<string, readonly string[]>;
  /** Password hashes by user. A secret: never logged, never in a layer's label or an event. */
  readonly passwordHashes: ReadonlyMap<string, string>;
  readonly kernelArguments: readonly string[];
  readonly kernelType: KernelType;
  readonly extensions: readonly string[];
  readonly fips: boolean;
  /** Empty when no MachineConfig sets it. */
  readonly osImageURL: string;
  /** What changes of files and units require by their owners' marks. */
  readonly marks: OwnerMarks;
}

/** Actions by path or unit name, in order; an empty list: none. */
export type OwnerMarks = ReadonlyMap<string, readonly DisruptionAction[]>;

export type KernelType = 'default' | 'realtime' | '64k-pages';

/** A user or group: by number, or by name to be looked up on the node. */
export type Owner = { readonly id: number } | { readonly name: string };

export interface Owned {
  readonly user: Owner;
  readonly group: Owner;
}

export interface NodeDirectory extends Owned {
  readonly path: string;
  /** Permission bits with setuid, setgid and sticky; Ignition's default is 0644 for files. */
  readonly mode: number;
}

export interface NodeFile extends NodeDirectory {
  readonly contents: Uint8Array;
}

export interface NodeLink extends Owned {
  readonly path: string;
  readonly target: string;
  readonly hard: boolean;
}

export interface NodeUnit {
  readonly name: string;
  /** Absent: the unit comes from the OS and only its state or drop-ins are configured. */
  readonly contents?: string;
  /** Absent: left as it is (or as presets say). */
  readonly enabled?: boolean | undefined;
  readonly masked: boolean;
  /** Drop-ins by file name (`10-x.conf`). */
  readonly dropins: ReadonlyMap<string, string>;
}

/** One difference between two NodeConfigs. */
export type ConfigChange =
  | {
      readonly kind: 'file';
      readonly path: string;
      readonly change: ChangeType;
      readonly what: readonly FileAspect[];
    }
  | { readonly kind: 'directory' | 'link'; readonly path: string; readonly change: ChangeType }
  | { readonly kind: 'unit'; readonly name: string; readonly change: ChangeType }
  | { readonly kind: 'sshKey'; readonly user: string; readonly change: ChangeType }
  | { readonly kind: 'passwordHash'; readonly user: string; readonly change: ChangeType }
  | { readonly kind: 'field'; readonly field: ConfigField; readonly change: ChangeType };

export type ChangeType = 'added' | 'changed' | 'removed';
export type FileAspect = 'contents' | 'mode' | 'owner';
/** Fields that only a reboot can change. */
export type ConfigField = 'kernelArguments' | 'kernelType' | 'extensions' | 'fips' | 'osImageURL';

/** The config of a node without MachineConfigs: every rendered config is a change from it. */
export const emptyNodeConfig: NodeConfig = {
  name: '',
  files: new Map(),
  directories: new Map(),
  links: new Map(),
  units: new Map(),
  sshKeys: new Map(),
  passwordHashes: new Map(),
  kernelArguments: [],
  kernelType: 'default',
  extensions: [],
  fips: false,
  osImageURL: '',
  marks: new Map(),
};
