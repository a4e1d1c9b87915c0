import pino from 'pino';
import { afterEach, expect, test, vi } from 'vitest';
import { changeOf } from '../../api/change-id.ts';
import { startScriptedServer } from '../../test/fixtures/scripted-server.ts';
import { startTracing } from './start-tracing.ts';

afterEach(() => vi.unstubAllEnvs());

test('a refusal of the collector is logged, and prevents nothing else', async () => {
  const server = await startScriptedServer((_request, response) => response.writeHead(403).end());
  const lines: string[] = [];
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) });
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', server.url);
  const tracing = await startTracing({ service: 'test', log, env: process.env });
  const span = { name: 'render', startedAt: 1, endedAt: 2, attributes: {} } as const;
  tracing.record({ ...span, change: changeOf('rendered-worker-0123456789abcdef0123456789abcdef') });
  await tracing.flush();
  await tracing.close();
  await server.stop();
  expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg)).toContain(
    'traces could not be sent',
  );
  expect(lines.join('')).toMatch(/"why":"[^"]+"/);
});
