import { hostname } from 'node:os';
import { Command } from 'commander';
import type { Logger } from 'pino';
import { OPERATOR_DEPLOYMENT, SHALE_VERSION } from '../api/names.ts';
import type { ApiClient } from '../cluster/api-client.ts';
import { processConnection } from '../cluster/connection.ts';
import { createApiClient } from '../cluster/http-api-client.ts';
import { leadWhenElected } from '../cluster/leader-election.ts';
import { createLogger, traceRequests } from '../cluster/log.ts';
import { untilShutDown } from '../cluster/process.ts';
import { StartupError } from '../cluster/startup-error.ts';
import { startTracing } from '../cluster/tracing/start-tracing.ts';
import { untilAnswered } from '../cluster/until-answered.ts';
import { detectOtherOperator } from '../rollout/other-operator.ts';
import { movedFlags, type OperatorFlags, receiverOf, withOperatorFlags } from './flags.ts';
import { limitHeapGrowth } from './heap-growth.ts';
import { lead } from './lead.ts';
import { ownPod } from './preconditions.ts';
import { startOperatorTelemetry } from './status.ts';

/** `shale operator`: the process of the operator's Deployment. */
export function operatorCommand(): Command {
  const command = new Command('operator').description(
    'Render pools, roll changes out, and start and stop layering; runs in the cluster.',
  );
  return withOperatorFlags(command).action((flags: OperatorFlags) => {
    limitHeapGrowth();
    return untilShutDown((signal) => runOperator(flags, signal));
  });
}

/**
 * Runs the operator until the signal: it waits until it leads, and works while it does. An API server that is away ends
 * neither: it starts, or leads again, once there is an answer.
 *
 * @param connect opens a client with connections of its own; the flags say where to, unless a test says it.
 * @throws {StartupError} when it must not or can't start; what made a controller fail, because a new process starts
 *   over.
 */
export async function runOperator(
  flags: OperatorFlags,
  signal: AbortSignal,
  connect: typeof connectByFlags = connectByFlags,
): Promise<void> {
  const log = createLogger(OPERATOR_DEPLOYMENT, flags.logLevel, flags.logFormat);
  // Before it leads: a replica that takes over must not fail for it.
  receiverOf(flags);
  const moved = movedFlags(flags);
  if (moved.length > 0)
    log.warn(
      { flags: moved },
      'flags of the live page are ignored, because a process of its own serves it: remove them from the operator, and install manifests/components/live-page or set livePage in the Helm chart',
    );
  const client = await connect(flags, log);
  const ask = <T>(question: () => Promise<T>) => untilAnswered(question, { log, signal });
  const other = await ask(() => detectOtherOperator(client, signal));
  if (other !== undefined) {
    throw new StartupError(
      'refused',
      `${other}: two operators would undo each other's work, so this one does not start`,
    );
  }
  const own =
    flags.image === undefined
      ? await ask(() => ownPod(client, flags.namespace, signal))
      : { image: flags.image, imagePullSecrets: [], environment: [] };
  const { namespace } = flags;
  const telemetry = flags.metricsPort === 0 ? undefined : await startOperatorTelemetry(flags.metricsPort);
  const tracing = await startTracing({ service: OPERATOR_DEPLOYMENT, log, env: process.env });
  try {
    await leadWhenElected({
      client: await connect(flags, log),
      lease: {
        namespace,
        name: OPERATOR_DEPLOYMENT,
        holder: process.env['POD_NAME'] ?? `${hostname()}-${process.pid}`,
        version: SHALE_VERSION,
      },
      log,
      signal,
      lead: (leading) =>
        lead({ client, log, own, flags, telemetry, tracing, signal: leading }).finally(() =>
          telemetry?.is('candidate'),
        ),
    });
  } finally {
    await telemetry?.close();
    await tracing.close();
  }
}

/** @returns a client with a pool of connections of its own. */
async function connectByFlags({ kubeconfig }: OperatorFlags, log: Logger): Promise<ApiClient> {
  return createApiClient(await processConnection(kubeconfig, process.env), {
    fieldManager: 'shale-operator',
    onRequest: traceRequests(log),
  });
}
