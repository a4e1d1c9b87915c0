import pino, { type Logger } from 'pino';

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

/**
 * @param name of the process.
 * @param level pino's; default info.
 * @returns a logger that writes JSON lines to standard error, or readable ones on a terminal.
 */
export function createLogger(name: string, level = 'info'): Logger {
  const options = { name, level, redact: { paths: REDACTED, censor: '[redacted]' } };
  if (process.stderr.isTTY !== true) return pino(options, pino.destination(2));
  return pino({
    ...options,
    transport: { target: 'pino-pretty', options: { destination: 2, ignore: 'pid,hostname' } },
  });
}
