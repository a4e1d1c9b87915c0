import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { type ScriptedServer, startScriptedServer } from '../../test/fixtures/scripted-server.ts';
import { alertmanager, prometheus } from './endpoints.ts';

const signal = () => new AbortController().signal;
let server: ScriptedServer | undefined;
afterEach(() => server?.stop());

async function serve(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<URL> {
  server = await startScriptedServer(answer);
  return new URL(`${server.url}/prefix/`);
}

describe('an Alertmanager', () => {
  const json = (response: ServerResponse, body: unknown, status = 200) =>
    void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  const alert = (alertname: string | undefined, status: object = { state: 'active' }) => ({
    labels: alertname === undefined ? {} : { alertname },
    annotations: {},
    status,
  });

  it('asks by the API v2 for what is active, with each matcher and the token', async () => {
    const directory = await mkdtemp(path.join(tmpdir(), 'shale-alertmanager-'));
    const tokenFile = path.join(directory, 'token');
    await writeFile(tokenFile, 'secret\n');
    const seen: (string | undefined)[] = [];
    const url = await serve(({ url: path, headers }, response) => {
      seen.push(path, headers.authorization);
      json(response, [alert('NodeDown'), alert(undefined)]);
    });
    try {
      const ask = alertmanager({ url, tokenFile });
      expect(await ask(['severity="critical"', 'team=~"a|b"'], signal())).toEqual([
        'NodeDown',
        'an alert without a name',
      ]);
    } finally {
      await rm(directory, { recursive: true });
    }
    const asked = new URL(seen[0] ?? '', url);
    expect([asked.pathname, seen[1]]).toEqual(['/prefix/api/v2/alerts', 'Bearer secret']);
    expect(asked.searchParams.getAll('filter')).toEqual(['severity="critical"', 'team=~"a|b"']);
    expect(Object.fromEntries(asked.searchParams)).toMatchObject({
      active: 'true',
      silenced: 'false',
      inhibited: 'false',
      unprocessed: 'false',
    });
  });

  it('takes nothing that is silenced or inhibited, whatever the server answers', async () => {
    const url = await serve((_request, response) =>
      json(response, [
        alert('Silenced', { state: 'suppressed', silencedBy: ['1'], inhibitedBy: [] }),
        alert('Odd', { state: 'active', silencedBy: ['1'], inhibitedBy: [] }),
        alert('Inhibited', { state: 'active', silencedBy: [], inhibitedBy: ['1'] }),
        alert('New', { state: 'unprocessed' }),
        alert('Active', { state: 'active', silencedBy: [], inhibitedBy: [] }),
      ]),
    );
    expect(await alertmanager({ url })([], signal())).toEqual(['Active']);
  });

  it.each<[string, (response: ServerResponse) => void, RegExp]>([
    ['a refusal', (response) => json(response, 'bad matcher', 400), /: it answers 400: "bad matcher"$/],
    [
      'a redirection',
      (response) => response.writeHead(302, { location: '/x' }).end(),
      /: it answers 302: ""$/,
    ],
    [
      'something else',
      (response) => json(response, { status: 'success' }),
      /something else than a list of alerts$/,
    ],
    ['no JSON', (response) => response.end('<html>'), /something else than a list of alerts$/],
  ])('%s is a failure that names the host', async (_what, answer, why) => {
    const url = await serve((_request, response) => answer(response));
    const failure = alertmanager({ url })([], signal());
    await expect(failure).rejects.toThrow(why);
    await expect(failure).rejects.toThrow(`Alertmanager ${url.host}: `);
  });

  it('a server that does not answer is a failure when the time is over', async () => {
    const asked = Promise.withResolvers<void>();
    const url = await serve(() => asked.resolve());
    const over = new AbortController();
    const failure = alertmanager({ url })([], over.signal);
    failure.catch(() => undefined);
    await asked.promise;
    over.abort();
    await expect(failure).rejects.toThrow('it did not answer in time');
  });

  it('a server that is not there is a failure, and so is a file that is missing', async () => {
    const url = await serve((_request, response) => json(response, []));
    await expect(alertmanager({ url, tokenFile: '/nowhere/token' })([], signal())).rejects.toThrow('ENOENT');
    await server?.stop();
    await expect(alertmanager({ url })([], signal())).rejects.toThrow('connection refused by 127.0.0.1:');
  });
});

describe('a Prometheus', () => {
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
});
