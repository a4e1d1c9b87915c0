import { once } from 'node:events';
import type { Server } from 'node:http';
import type { Server as TlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { Counter, Gauge, type Registry } from 'prom-client';
import { errorMessage } from '../api/error-message.ts';
import { createServer } from './node-http.ts';

/** What a process reports for monitoring. */
export type Telemetry = ListeningServer;

interface TelemetryOptions {
  /** 0: one that the kernel chooses. */
  readonly port: number;
  /** Address to listen on; absent: all of them, because the kubelet and Prometheus connect from outside of the pod. */
  readonly host?: string | undefined;
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
      (error: unknown) => response.writeHead(500).end(errorMessage(error)),
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

/** A server that takes requests. */
export interface ListeningServer {
  /** Where it listens. */
  readonly port: number;
  /** Ends it, and with it every connection that is open. */
  close(): Promise<void>;
}

/**
 * Makes a server listen.
 *
 * @param port 0: one that the kernel chooses. @param host address to listen on; absent: every one.
 * @throws the system's error when the port can't be had.
 */
export async function listen(
  server: Server | TlsServer,
  port: number,
  host?: string,
): Promise<ListeningServer> {
  server.listen(port, host);
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

/** @returns what `/metrics` answers with: a registry's metrics, and those that every process has. */
export function metricsPage(registry: Registry): TelemetryOptions['metrics'] {
  registerProcessMetrics(registry);
  return async () => ({ text: await registry.metrics(), type: registry.contentType });
}

/**
 * The metrics that every process has, by the names that Prometheus' client libraries have in common. Not prom-client's
 * own collection, which measures the event loop a hundred times a second, also of a process that does nothing.
 */
export function registerProcessMetrics(registry: Registry): void {
  const registers = [registry];
  let before = process.cpuUsage();
  new Counter({
    name: 'process_cpu_seconds_total',
    help: 'Processor time that the process has used, in seconds.',
    registers,
    collect() {
      const now = process.cpuUsage();
      this.inc((now.user - before.user + now.system - before.system) / 1e6);
      before = now;
    },
  }).inc((before.user + before.system) / 1e6);
  new Gauge({
    name: 'process_resident_memory_bytes',
    help: 'Memory of the process that is resident, in bytes.',
    registers,
    collect() {
      this.set(process.memoryUsage.rss());
    },
  });
  new Gauge({
    name: 'process_start_time_seconds',
    help: 'When the process was started, in seconds since the epoch.',
    registers,
  }).set(Math.round(Date.now() / 1000 - process.uptime()));
}
