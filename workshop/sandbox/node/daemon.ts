import path from 'node:path';
import { Command } from 'commander';
import { daemonCommand } from '../../../daemon/main.ts';
import { directoryNode } from './directory-node.ts';

/**
 * The daemon of a directory node: Shale's own, with a directory in place of a host. It takes the arguments of `shale`,
 * so that a pod runs as its DaemonSet says.
 *
 *   node daemon.ts daemon --host-root <node's directory>/root [flags of shale daemon]
 */
await new Command('shale')
  .addCommand(daemonCommand(({ hostRoot }, source) => directoryNode(path.dirname(hostRoot), source)))
  .parseAsync();
