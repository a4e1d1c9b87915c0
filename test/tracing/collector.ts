import { json } from 'node:stream/consumers';
import { z } from 'zod';
import { type Changes, createChanges } from '../../workshop/sandbox/wait-until.ts';
import { startScriptedServer } from '../fixtures/scripted-server.ts';

const KeyValue = z.object({
  key: z.string(),
  value: z.object({ stringValue: z.string(), intValue: z.union([z.string(), z.number()]) }).partial(),
});
/** ExportTraceServiceRequest in OTLP's JSON encoding (opentelemetry-proto, trace/v1/trace.proto): ids are in hex. */
const Request = z.object({
  resourceSpans: z.array(
    z.object({
      resource: z.object({ attributes: z.array(KeyValue) }),
      scopeSpans: z.array(
        z.object({
          spans: z.array(
            z.object({
              traceId: z.string().regex(/^[0-9a-f]{32}$/),
              spanId: z.string().regex(/^[0-9a-f]{16}$/),
              parentSpanId: z.string().optional(),
              name: z.string(),
              startTimeUnixNano: z.string(),
              endTimeUnixNano: z.string(),
              attributes: z.array(KeyValue).optional(),
              status: z.object({ code: z.number().optional() }).optional(),
            }),
          ),
        }),
      ),
    }),
  ),
});

export interface ReceivedSpan {
  readonly service: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly name: string;
  /** ms */
  readonly took: number;
  readonly attributes: Readonly<Record<string, string>>;
  readonly failed: boolean;
}

/** A collector that keeps what it is sent. */
export interface Collector {
  readonly endpoint: string;
  readonly spans: readonly ReceivedSpan[];
  readonly changes: Changes;
  /** @returns what was sent that is no OTLP. */
  readonly refused: readonly string[];
  close(): Promise<void>;
}

/** Starts one on loopback, on a port that the kernel chooses. */
export async function startCollector(): Promise<Collector> {
  const spans: ReceivedSpan[] = [];
  const refused: string[] = [];
  const changes = createChanges();
  const { url: endpoint, stop: close } = await startScriptedServer(async (request, response) => {
    try {
      if (request.url !== '/v1/traces') throw new Error(`${request.method} ${request.url}`);
      spans.push(...spansOf(Request.parse(await json(request))));
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    } catch (error) {
      refused.push(String(error));
      response.writeHead(400).end();
    }
    changes.notify();
  });
  return { endpoint, spans, refused, changes, close };
}

function spansOf({ resourceSpans }: z.infer<typeof Request>): ReceivedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map(({ traceId, spanId, parentSpanId, name, attributes, status, ...times }) => ({
        service: attributesOf(resource.attributes)['service.name'] ?? '',
        traceId,
        spanId,
        parentSpanId: parentSpanId === '' ? undefined : parentSpanId,
        name,
        took: Number((BigInt(times.endTimeUnixNano) - BigInt(times.startTimeUnixNano)) / 1_000_000n),
        attributes: attributesOf(attributes ?? []),
        failed: status?.code === 2,
      })),
    ),
  );
}

function attributesOf(list: readonly z.infer<typeof KeyValue>[]): Record<string, string> {
  return Object.fromEntries(
    list.map(({ key, value }) => [key, String(value.stringValue ?? value.intValue ?? '')]),
  );
}
