import { open } from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { Command } from 'commander';
import { pack } from 'tar-stream';
import { errorMessage } from '../../api/error-message.ts';
import { SHALE_VERSION } from '../../api/names.ts';
import { toSeconds } from '../../api/object.ts';
import { by } from '../../api/order.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import {
  type ClusterFlags,
  connectionOf,
  onCluster,
  withClusterFlags,
  withLeaseNamespace,
} from '../command-line/cluster-access.ts';
import { CommandError, exitCodes, UsageError } from '../command-line/exit-codes.ts';
import { note, print } from '../command-line/output.ts';
import { observeCluster, type Places } from '../observe/cluster-watch.ts';
import { formatStatus } from '../observe/status-text.ts';
import { statusView } from '../observe/status-view.ts';
import { collect } from './collect.ts';
import type { BundleFile } from './collect-logs.ts';

interface GatherFlags extends ClusterFlags, Places {
  readonly output?: string;
  readonly node?: readonly string[];
}

/** `shale gather`: collects what a bug report needs in one file. */
export function gatherCommand(): Command {
  const command = new Command('gather')
    .option(
      '-o, --output <file>',
      'file to write; default: shale-gather-<time>.tar.gz in the current directory',
    )
    .option(
      '--node <name...>',
      'nodes to collect journals from; default: up to 20 nodes that are degraded or not updated',
    );
  return withLeaseNamespace(withClusterFlags(command)).action((flags: GatherFlags) =>
    onCluster(flags, async (client, signal) => {
      const now = new Date();
      const root = `shale-gather-${toSeconds(now).replaceAll(':', '')}`;
      const file = flags.output ?? `${root}.tar.gz`;
      const connection = await connectionOf(flags);
      const asked = { client, connection, places: flags, nodes: flags.node, signal };
      const { files, problems, redaction } = await collect(asked);
      const [problem] = problems;
      // A report without an object of the cluster helps nobody.
      if (files.length === 0 && problem !== undefined)
        throw new CommandError(`nothing could be collected: ${problem}`, exitCodes.unavailable);
      const summaries = [
        { name: 'version.txt', text: `shale ${SHALE_VERSION}\n` },
        { name: 'status.txt', text: `${redaction.text(await statusText(client, flags, now, signal))}\n` },
        { name: 'problems.txt', text: problems.map((problem) => `${problem}\n`).join('') },
      ];
      await writeBundle(file, root, [...files, ...summaries], now, signal).catch((error: unknown) => {
        const why = errorMessage(error);
        throw new UsageError(`${file} can't be written: ${why}`, { cause: error });
      });
      print(`${path.resolve(file)}: ${files.length} objects and logs`);
      for (const problem of problems) note(`not collected: ${problem}`);
      note(
        'fields that may have secrets are omitted, and what looks like one in logs and journals; review these before you send them',
      );
    }),
  );
}

/** The report may be about a cluster whose status can't be read. */
async function statusText(
  client: ApiClient,
  places: Places,
  now: Date,
  signal: AbortSignal,
): Promise<string> {
  try {
    const view = statusView(await observeCluster(client, places, signal), now.getTime());
    return formatStatus(view, { wide: true, allNodes: true, now: now.getTime() });
  } catch (error) {
    signal.throwIfAborted();
    return errorMessage(error);
  }
}

/** Readable for its owner only: logs and objects of a cluster may be confidential. */
const MODE = 0o600;

/**
 * Writes files as a gzip-compressed tar (POSIX ustar), in the order of their names.
 *
 * @param root directory in the archive that contains them.
 * @throws the system's error, also when the file already exists.
 */
async function writeBundle(
  file: string,
  root: string,
  files: readonly BundleFile[],
  mtime: Date,
  signal: AbortSignal,
): Promise<void> {
  const handle = await open(file, 'wx', MODE);
  const tar = pack();
  const written = pipeline(tar, createGzip(), handle.createWriteStream(), { signal });
  for (const { name, text } of files.toSorted(by(({ name }) => name))) {
    tar.entry({ name: `${root}/${name}`, mode: 0o644, uid: 0, gid: 0, mtime }, text);
  }
  tar.finalize();
  await written;
}
