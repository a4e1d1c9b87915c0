import type { ServerResponse } from 'node:http';
import { afterEach, expect, it } from 'vitest';
import { type ScriptedServer, startScriptedServer } from '../test/fixtures/scripted-server.ts';
import { prometheus } from './prometheus.ts';

const signal = () => new AbortController().signal;
let server: ScriptedServer | undefined;
afterEach(() => server?.stop());

const answerOf = (result: readonly unknown[], more: object = {}) => ({
  status: 'success',
  data: { resultType: 'vector', result },
  ...more,
});
const SERIES = { metric: { job: 'a' }, value: [0, '1'] };

async function ask(status: number, body: unknown, query = 'up == 0') {
  const seen: (string | undefined)[] = [];
  server = await startScriptedServer(({ url }, response: ServerResponse) => {
    seen.push(url);
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  const url = new URL(`${server.url}/prefix`);
  const answer = await prometheus({ url })(query, signal());
  const asked = new URL(seen[0] ?? '', url);
  expect([asked.pathname, asked.searchParams.get('query')]).toEqual(['/prefix/api/v1/query', query]);
  return answer;
}

it.each<[string, object, readonly string[]]>([
  ['no series', answerOf([]), []],
  ['series', answerOf([SERIES, SERIES]), ['up == 0']],
  ['series, and a store that did not answer', answerOf([SERIES], { warnings: ['no answer'] }), ['up == 0']],
  ['no series, and remarks on the query', answerOf([], { infos: ['might be no counter'] }), []],
])('%s', async (_what, body, found) => {
  expect(await ask(200, body)).toEqual(found);
});

it.each<[string, number, unknown, RegExp]>([
  [
    'a store that did not answer',
    200,
    answerOf([], { warnings: ['no store answers', 'another'] }),
    /: the result of up == 0 may be incomplete: no store answers, another$/,
  ],
  [
    'a refused query',
    400,
    { status: 'error', errorType: 'bad_data', error: '1:6: parse error' },
    /: it refuses the query up == 0: 1:6: parse error$/,
  ],
  ['a server that starts', 503, 'Service Unavailable', /: it answers 503: ""$/],
  ['a login page', 200, '<html>', /: it answers something else than the result of a query$/],
  ['another API', 200, [], /: it answers something else than the result of a query$/],
  [
    'a scalar',
    200,
    { status: 'success', data: { resultType: 'scalar', result: [0, '0'] } },
    /: the result of up == 0 is a scalar: expected an instant vector/,
  ],
])('%s is no answer', async (_what, status, body, why) => {
  await expect(ask(status, body)).rejects.toThrow(why);
});
