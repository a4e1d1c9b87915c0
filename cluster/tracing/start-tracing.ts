import type { Tracing, TracingOptions } from './otlp.ts';
import { noTracer } from './span.ts';

/**
 * Sends a trace of every change to a collector, by OTLP over HTTP, where OpenTelemetry's own environment variables name
 * one (https://opentelemetry.io/docs/specs/otel/protocol/exporter/): otherwise nothing of OpenTelemetry is even loaded.
 */
export async function startTracing(options: TracingOptions): Promise<Tracing> {
  if (!isWanted(options.env)) return { ...noTracer, close: async () => undefined };
  const { otlpTracing } = await import('./otlp.ts');
  return otlpTracing(options);
}

/** @returns whether the environment names a collector and does not switch it off. */
export function isWanted(env: NodeJS.ProcessEnv): boolean {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: all = '', OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: own = '' } = env;
  const isOff = env['OTEL_SDK_DISABLED']?.toLowerCase() === 'true' || env['OTEL_TRACES_EXPORTER'] === 'none';
  return (all !== '' || own !== '') && !isOff;
}
