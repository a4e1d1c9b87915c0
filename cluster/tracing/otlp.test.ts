import { createServer } from 'node:http';
import pino from 'pino';
import { afterEach, expect, test, vi } from 'vitest';
import { changeOf } from '../../api/names.ts';
import { listen } from '../telemetry.ts';
import { startTracing } from './start-tracing.ts';

afterEach(() => vi.unstubAllEnvs());

test('a collector that refuses is told in the log, and keeps nothing from going on', async () => {
  const server = await listen(
    createServer((_request, response) => response.writeHead(403).end()),
    0,
    '127.0.0.1',
  );
  const lines: string[] = [];
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) });
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', `http://127.0.0.1:${server.port}`);
  const tracing = await startTracing({ service: 'test', log, env: process.env });
  const span = { name: 'render', startedAt: 1, endedAt: 2, attributes: {} } as const;
  tracing.record({ ...span, change: changeOf('rendered-worker-0123456789abcdef0123456789abcdef') });
  await tracing.flush();
  await tracing.close();
  await server.close();
  expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg)).toContain(
    'traces could not be sent',
  );
  expect(lines.join('')).toMatch(/"why":"[^"]+"/);
});
