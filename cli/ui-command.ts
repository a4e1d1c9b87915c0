import { Command } from 'commander';
import { errorMessage } from '../api/error-message.ts';
import { DEFAULT_LEASE_NAMESPACE } from '../api/names.ts';
import type { ApiClient } from '../cluster/api-client.ts';
import type { Connection } from '../cluster/connection.ts';
import { createLogger } from '../cluster/log.ts';
import { type LogFlags, withLogFlags } from '../cluster/log-flags.ts';
import { untilShutDown, wholeNumber } from '../cluster/process.ts';
import { keyAccess } from '../page/server/access.ts';
import { ChangeReader } from '../page/server/change-reader.ts';
import { LiveView } from '../page/server/live-view.ts';
import { readAssets } from '../page/server/page-assets.ts';
import { createPageCaches, shownKinds } from '../page/server/page-caches.ts';
import { startPageServer } from '../page/server/page-server.ts';
import { MaintenanceLookup } from '../rollout/node-claims.ts';
import {
  authenticatedUser,
  type ClusterFlags,
  clientOf,
  connectionOf,
  readAll,
  withClusterFlags,
} from './command-line/cluster-access.ts';
import { CommandError, exitCodes } from './command-line/exit-codes.ts';
import { note, print } from './command-line/output.ts';
import type { Places } from './observe/cluster-watch.ts';

interface UiFlags extends ClusterFlags, Places, LogFlags {
  readonly port: number;
}

/** ms; deadline of the request for the user's name. */
const WHO_MS = 10_000;
const LOOPBACK = '127.0.0.1';

/** `shale ui`: the live page on this machine, with the permissions of the kubeconfig's user. */
export function uiCommand(): Command {
  return withLogFlags(withClusterFlags(new Command('ui')), 'warn')
    .option('--port <port>', 'port on 127.0.0.1; 0 selects a free port', wholeNumber(0, 65_535), 0)
    .option('--lease-namespace <name>', 'namespace of the node leases', DEFAULT_LEASE_NAMESPACE)
    .action((flags: UiFlags) => untilShutDown((signal) => serve(flags, signal)));
}

async function serve(flags: UiFlags, signal: AbortSignal): Promise<void> {
  const assets = await readAssets(process.env['SHALE_PAGE_DIR']);
  const connection = await connectionOf(flags);
  const client = clientOf(connection, flags);
  await checkReadable(client, flags.leaseNamespace, signal);
  const user = await userOf(client, signal);
  const log = createLogger('shale-ui', flags.logLevel, flags.logFormat);
  const { caches, start } = createPageCaches(client, flags.leaseNamespace, log);
  const maintenance = new MaintenanceLookup(client, Date.now);
  const live = new LiveView({ caches, log, inMaintenance: (stop) => maintenance.nodes(stop) });
  const onRedeemed = () => note(`opened; address for another browser: ${address()}`);
  const access = keyAccess(onRedeemed, user);
  const server = await startPageServer({
    live,
    assets,
    access,
    changes: new ChangeReader(client, caches),
    cluster: nameOf(connection),
    port: flags.port,
    host: LOOPBACK,
    log,
  });
  const address = () => `http://${LOOPBACK}:${server.port}/#${access.newKey()}`;
  try {
    print(address());
    note('The address works once. Press Ctrl-C to stop.');
    await Promise.all([start(signal), live.run(signal)]);
  } finally {
    await server.close();
  }
}

/** @throws {CommandError} when the API server doesn't respond. */
async function userOf(client: ApiClient, signal: AbortSignal): Promise<string | undefined> {
  try {
    return await authenticatedUser(client, AbortSignal.any([signal, AbortSignal.timeout(WHO_MS)]));
  } catch (error) {
    signal.throwIfAborted();
    const why = errorMessage(error);
    throw new CommandError(why, exitCodes.unavailable, { cause: error });
  }
}

/** Many clusters are called `kubernetes` in their kubeconfigs. */
function nameOf({ cluster, baseUrl: { host } }: Connection): string {
  return cluster === undefined ? host : `${cluster} (${host})`;
}

/** An informer retries a forbidden watch for ever, so each kind is read once before. @throws {CommandError} */
async function checkReadable(client: ApiClient, leaseNamespace: string, signal: AbortSignal): Promise<void> {
  // Selects no object: only whether the request is allowed matters.
  const fieldSelector = 'metadata.name=none';
  const reads = shownKinds(leaseNamespace).map(({ kind, namespace }) =>
    readAll(client, kind, { fieldSelector, namespace, signal }),
  );
  await Promise.all(reads);
}
