import {
  context,
  type DiagLogger,
  DiagLogLevel,
  diag,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, type IdGenerator, TracerProvider } from '@opentelemetry/sdk-trace';
import type { Logger } from 'pino';
import { errorMessage } from '../../api/error-message.ts';
import { SHALE_VERSION } from '../../api/names.ts';
import { present } from '../../api/present.ts';
import { type Span, spanIds, type Tracer } from './span.ts';

/** A tracer that somebody has to close. */
export interface Tracing extends Tracer {
  /** Sends what is not sent yet, within seconds. Never throws. */
  close(): Promise<void>;
}

export interface TracingOptions {
  /** The process, such as shale-operator; OTEL_SERVICE_NAME overrides it. */
  readonly service: string;
  readonly log: Logger;
  readonly env: NodeJS.ProcessEnv;
}

/** A collector that is unavailable delays neither a reboot nor the end of a process for longer. */
const FLUSH_MS = 3_000;

/** The ids of the span that is recorded next: processes have to agree on them. */
class GivenIds implements IdGenerator {
  #next: Pick<Span, 'change' | 'id'> | undefined;

  give(span: Pick<Span, 'change' | 'id'>): void {
    this.#next = span;
  }

  generateTraceId(): string {
    if (this.#next === undefined) throw new Error('a span has no change: record it through the tracer');
    return this.#next.change;
  }

  generateSpanId(): string {
    return this.#next?.id ?? spanIds.any();
  }
}

/** @returns a tracer that sends to the collector that the environment names. */
export function otlpTracing({ service, log, env }: TracingOptions): Tracing {
  diag.setLogger(diagnosticsTo(log), { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  const ids = new GivenIds();
  const resource = resourceFromAttributes({
    'service.name': service,
    'service.version': SHALE_VERSION,
    'service.namespace': 'shale',
    ...present({ 'k8s.node.name': env['NODE_NAME'], 'k8s.pod.name': env['POD_NAME'] }),
  }).merge(detectResources({ detectors: [envDetector] }));
  const provider = new TracerProvider({
    resource,
    idGenerator: ids,
    spanProcessors: [new BatchSpanProcessor({ exporter: new OTLPTraceExporter() })],
  });
  const tracer = provider.getTracer('shale', SHALE_VERSION);
  const inTime = (work: Promise<void>) => withinDeadline(work, log);
  return {
    record(span) {
      ids.give(span);
      const started = tracer.startSpan(
        span.name,
        { startTime: span.startedAt, attributes: { ...span.attributes } },
        parentOf(span),
      );
      if (span.failure !== undefined) {
        started.setAttribute('error.type', span.failure);
        started.setStatus({ code: SpanStatusCode.ERROR });
      }
      started.end(span.endedAt);
    },
    flush: () => inTime(provider.forceFlush({ timeoutMillis: FLUSH_MS })),
    close: () => inTime(provider.shutdown()),
  };
}

function parentOf({ change, parent }: Span) {
  if (parent === undefined) return context.active();
  const parentContext = { traceId: change, spanId: parent, traceFlags: TraceFlags.SAMPLED, isRemote: true };
  return trace.setSpanContext(context.active(), parentContext);
}

async function withinDeadline(work: Promise<void>, log: Logger): Promise<void> {
  const over = Promise.withResolvers<void>();
  const timer = setTimeout(() => over.reject(new Error(`took longer than ${FLUSH_MS} ms`)), FLUSH_MS);
  try {
    await Promise.race([work, over.promise]);
  } catch (error) {
    log.warn({ why: reasonOf(error) }, 'traces could not be sent');
  } finally {
    clearTimeout(timer);
    // A caller that no longer waits need not get the error either.
    work.catch(() => undefined);
  }
}

/** The provider rejects with a list: an error for each of its processors. */
function reasonOf(error: unknown): string {
  const errors: readonly unknown[] = Array.isArray(error) ? error : [error];
  return errors.map(errorMessage).join('; ');
}

/** Failures of the exporter are logged; they never fail the process. */
function diagnosticsTo(log: Logger): DiagLogger {
  const warn = (message: string) => log.warn({ why: message }, 'traces could not be sent');
  const ignore = () => undefined;
  return { error: warn, warn, info: ignore, debug: ignore, verbose: ignore };
}
