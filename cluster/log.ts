import pino, { type Logger } from 'pino';
import { type MachineConfiguration, MachineConfigurations } from '../api/machine-configuration.ts';
import { MACHINE_CONFIGURATION } from '../api/names.ts';
import { present } from '../api/present.ts';
import { escapedSource } from '../api/visible-text.ts';
import type { RequestObservation } from './api-calls.ts';
import type { ApiClient } from './api-client.ts';
import { createInformer, type Informer } from './informer.ts';

/** `"level":"info","time":"2026-01-01T00:00:00.000Z"` in place of `"level":30,"time":1767225600000`. */
const RFC_3339 = {
  timestamp: pino.stdTimeFunctions.isoTime,
  formatters: { level: (label: string) => ({ level: label }) },
};

/** Fields that could hold a secret if an object were logged whole. */
const REDACTED = [
  'token',
  'password',
  '*.token',
  '*.password',
  '*.authorization',
  '*.data',
  'headers',
  '*.headers',
];

/** The format of times and levels in log lines: for people and log collectors, or for the tools of pino. */
export const LOG_FORMATS = ['rfc3339', 'pino'] as const;
export type LogFormat = (typeof LOG_FORMATS)[number];

/**
 * @param name of the process.
 * @param level pino's; default info.
 * @param format of lines that no terminal shows.
 * @returns a logger that writes JSON lines to standard error, or readable ones on a terminal.
 */
export function createLogger(name: string, level = 'info', format: LogFormat = 'rfc3339'): Logger {
  const options = { name, level, redact: { paths: REDACTED, censor: '[redacted]' } };
  if (process.stderr.isTTY !== true) {
    const destination = pino.destination(2);
    const formatted = format === 'pino' ? options : { ...options, ...RFC_3339 };
    // JSON's own escapes leave C1 and bidirectional controls, which a terminal with `kubectl logs` in it would execute.
    return pino(formatted, { write: (line) => destination.write(escapedSource(line)) });
  }
  return pino({
    ...options,
    transport: { target: 'pino-pretty', options: { destination: 2, ignore: 'pid,hostname' } },
  });
}

/**
 * Fields of a MachineConfiguration's spec: what the operator logs, and what its operands log, the builder and the
 * daemons.
 */
type LevelField = 'operatorLogLevel' | 'logLevel';

/**
 * Keeps a process's log at the level that the MachineConfiguration requests, from now on. Child loggers without a level
 * of their own follow it, including those of work that takes hours.
 *
 * @param configurations not started yet, so that its first list is also applied.
 * @param flag the process's own level, which applies where the field requests none.
 */
export function followLogLevel(
  configurations: Pick<Informer<MachineConfiguration>, 'onChange'>,
  log: Pick<Logger, 'level'>,
  field: LevelField,
  flag: string,
): void {
  configurations.onChange(({ type, object }) => {
    if (object.metadata.name !== MACHINE_CONFIGURATION) return;
    log.level = (type === 'DELETED' ? undefined : requestedLevel(object.spec, field)) ?? flag;
  });
}

/**
 * The same for an operand that has no other use for a watch of the MachineConfiguration. The level that the log has now
 * is its flag's.
 *
 * @returns once the signal is aborted.
 */
export function watchLogLevel(client: ApiClient, log: Logger, signal: AbortSignal): Promise<void> {
  const fieldSelector = `metadata.name=${MACHINE_CONFIGURATION}`;
  const configuration = createInformer(client, MachineConfigurations, {
    fieldSelector,
    keep: levelOnly,
    log,
  });
  followLogLevel(configuration, log, 'logLevel', log.level);
  return configuration.start(signal);
}

/** The policies of a large cluster need no place in the memory of every daemon. */
function levelOnly({ metadata, spec, ...type }: MachineConfiguration): MachineConfiguration {
  const { name, uid, resourceVersion } = metadata;
  return {
    apiVersion: type.apiVersion,
    kind: type.kind,
    metadata: { name, ...present({ uid, resourceVersion }) },
    spec: present({ logLevel: spec?.logLevel }),
  };
}

/**
 * @returns what logs each request of a client at the level that LogLevel calls Trace: what it is for, never what is in
 * it.
 */
export function traceRequests(log: Logger): (request: RequestObservation) => void {
  return (request) => log.trace(request, 'asked the API server');
}

/** @returns pino's level (openshift/api, operator/v1, LogLevel); undefined where the process's flag decides. */
export function requestedLevel(
  spec: MachineConfiguration['spec'],
  field: LevelField,
): 'debug' | 'trace' | undefined {
  switch (spec?.[field]) {
    case 'Debug':
      return 'debug';
    case 'Trace':
    case 'TraceAll':
      return 'trace';
    default:
      return undefined;
  }
}
