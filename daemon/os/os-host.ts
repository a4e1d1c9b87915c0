import type { RunOsCommand } from './os-command.ts';
import type { ImageSource } from './ostree/image-source.ts';

/** A host whose operating system a tool manages, and how the daemon reaches it. */
export interface OsHost {
  /** The running root, as the daemon sees it. */
  readonly root: string;
  /** The physical root, as the daemon sees it. */
  readonly sysroot: string;
  /** Runs commands on the host, where its own root is `/`. */
  readonly run: RunOsCommand;
  /** Where the commands see what the daemon sees there. */
  readonly commandPath: (place: string) => string;
  /** Describes images: their labels and layers. Image tools fetch the layers themselves. */
  readonly source: ImageSource;
  /** Where the node keeps its pull secret, as the commands see it. */
  readonly pullSecretFile: string;
}
