import { createServer } from 'node:http';
import { type ListeningServer, listen } from './listening-server.ts';

/** What a process tells whoever looks after it. */
export type Telemetry = ListeningServer;

export interface TelemetryOptions {
  /** 0: one that the kernel chooses. */
  readonly port: number;
  /** Address to listen on; every one without it, because the kubelet and Prometheus come from outside of the pod. */
  readonly host?: string;
  /** @returns the metrics in Prometheus' text format, and its media type. */
  readonly metrics: () => Promise<{ readonly text: string; readonly type: string }>;
  /** @returns why the process is not ready, in words; undefined when it is. */
  readonly notReady: () => string | undefined;
}

/**
 * Serves `/healthz` (200 as long as the process answers at all), `/readyz` and `/metrics`.
 *
 * @throws the system's error when the port can't be had.
 */
export async function startTelemetry({
  port,
  host,
  metrics,
  notReady,
}: TelemetryOptions): Promise<Telemetry> {
  const answers: Readonly<Record<string, () => Promise<Answer>>> = {
    '/healthz': async () => ({ status: 200, text: 'ok\n' }),
    '/readyz': async () => {
      const why = notReady();
      return why === undefined ? { status: 200, text: 'ok\n' } : { status: 503, text: `${why}\n` };
    },
    '/metrics': async () => ({ status: 200, ...(await metrics()) }),
  };
  const server = createServer((request, response) => {
    const answer = answers[new URL(request.url ?? '/', 'http://here').pathname] ?? notFound;
    answer().then(
      ({ status, text, type = 'text/plain; charset=utf-8' }) =>
        response.writeHead(status, { 'content-type': type }).end(text),
      (error: unknown) => response.writeHead(500).end(error instanceof Error ? error.message : String(error)),
    );
  });
  return listen(server, port, host);
}

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly type?: string;
}

async function notFound(): Promise<Answer> {
  return { status: 404, text: 'there are /healthz, /readyz and /metrics\n' };
}
