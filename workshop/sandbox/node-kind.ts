import type { DigestedPullspec } from '../../api/references.ts';
import type { SandboxRegistry } from './registry.ts';

export const NODE_KINDS = ['directory', 'systemd'] as const;
/** The kinds of nodes: directories, in which no process runs, or machines with systemd. */
export type NodeKindName = (typeof NODE_KINDS)[number];

export type MachineEnd = 'rebooting' | 'off';

/** A node from one boot to its end. */
export interface BootedMachine {
  readonly bootID: string;
  /** Resolves when it goes down, with whether it boots again by itself. */
  readonly down: Promise<MachineEnd>;
  /** Power off without notice. */
  kill(): Promise<void>;
}

/** The nodes of one kind: what they come with, how they are installed and booted, and how a daemon reaches one. */
export interface NodeKind {
  readonly name: NodeKindName;
  /** Creates what all nodes share and what takes long, unless it exists. */
  prepare(onProgress: (what: string) => void, signal: AbortSignal): Promise<void>;
  /**
   * Pushes the image that the nodes come with.
   *
   * @param withShell the builder's engine is to run commands in it.
   */
  pushStock(registry: SandboxRegistry, withShell: boolean, signal: AbortSignal): Promise<DigestedPullspec>;
  /** Installs that image on each node, as an installer does from its medium; no registry is asked. */
  install(nodes: readonly InstalledNode[], image: DigestedPullspec, signal: AbortSignal): Promise<void>;
  /** Boots what the node's bootloader has first. @param signal ends the watch over it, not the node. */
  boot(directory: string, signal: AbortSignal): Promise<BootedMachine>;
  /** @returns how a daemon reaches the node in its present boot. */
  daemonHost(directory: string): Promise<DaemonHost>;
}

/** How the daemon's process reaches its node, which in a cluster is the host that its pod mounts. */
export interface DaemonHost {
  /** The TypeScript file that runs in place of `cli/main.ts`, for a node that Shale's own daemon can't reach. */
  readonly program?: string;
  /** Flags of `shale daemon` in place of `--host-root /host`. */
  readonly args: readonly string[];
}

export interface InstalledNode {
  readonly name: string;
  readonly directory: string;
}
