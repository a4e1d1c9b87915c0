import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import { describe, expect, onTestFinished, test } from 'vitest';
import { deadline } from '../../test/fixtures/patience.ts';
import { type EngineBuild, EngineError, StepFailed } from './container-engine.ts';
import { dockerEngine } from './docker-engine.ts';

const signal = deadline(60_000);
const DOCKER = { Version: '20.10.24', Arch: 'amd64', Components: [{ Name: 'Engine' }] };
const PODMAN = { Version: '4.3.1', Arch: 'arm64', Components: [{ Name: 'Podman Engine' }] };

type Answer = (request: IncomingMessage, response: ServerResponse, body: Buffer) => void;

const json =
  (content: unknown, status = 200): Answer =>
  (_request, response) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(content));
const refused = (status: number, message = 'no') => json({ message }, status);
/** Lines of progress, as builds and loads have them. */
const progress =
  (...messages: readonly object[]): Answer =>
  (_request, response) =>
    response.end(messages.map((message) => `${JSON.stringify(message)}\n`).join(''));
/** An answer that has begun and does not come to its end. */
const breaksOff: Answer = (_request, response) => {
  response.writeHead(200, { 'content-length': 1000 });
  response.write('{"status":"reading"}\n', () => response.destroy());
};
const ping =
  (headers: Record<string, string> = {}): Answer =>
  (_request, response) =>
    response.writeHead(200, headers).end('OK');

interface Asked {
  /** `METHOD path` */
  readonly line: string;
  readonly query: Readonly<Record<string, string>>;
  readonly body: string;
}

/** An engine on a socket of its own that answers `METHOD path` as a test says; anything else is not found. */
async function engineThat(answers: Readonly<Record<string, Answer>>, options = {}) {
  const dir = await mkdtemp(path.join(tmpdir(), 'shale-docker-'));
  const socket = path.join(dir, 'engine.sock');
  const asked: Asked[] = [];
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://engine');
    const line = `${request.method} ${decodeURIComponent(pathname)}`;
    buffer(request).then(
      (body) => {
        asked.push({ line, query: Object.fromEntries(searchParams), body: body.toString() });
        (answers[line] ?? refused(404))(request, response, body);
      },
      () => response.destroy(),
    );
  });
  // The session of a build by BuildKit, which asks for nothing here.
  server.on('upgrade', (_request, connection) => {
    connection.write('HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n');
    connection.on('error', () => undefined);
    onTestFinished(() => void connection.destroy());
  });
  server.listen(socket);
  await once(server, 'listening');
  onTestFinished(async () => {
    server.close();
    server.closeAllConnections();
    await rm(dir, { recursive: true });
  });
  const lines = () => asked.map(({ line }) => line);
  return {
    engine: dockerEngine({ kind: 'socket', path: socket }, options),
    url: `unix://${socket}`,
    asked,
    lines,
  };
}

const aBuild = (more: Partial<EngineBuild> = {}): EngineBuild => ({
  context: Buffer.from('context'),
  containerfile: 'FROM scratch',
  tag: 'shale.local/a:1',
  buildArguments: {},
  secrets: [],
  cacheFrom: [],
  ...more,
});

describe('what an engine is', () => {
  test.each([
    ['Docker with BuildKit', DOCKER, { 'builder-version': '2' }, { kind: 'Docker', buildKit: true }],
    ['Docker without', DOCKER, { 'builder-version': '1' }, { kind: 'Docker', buildKit: false }],
    ['Docker that does not say', DOCKER, {}, { kind: 'Docker', buildKit: false }],
    [
      'Docker without components',
      { ...DOCKER, Components: undefined },
      {},
      { kind: 'Docker', buildKit: false },
    ],
    ['Podman, whatever it says', PODMAN, { 'builder-version': '2' }, { kind: 'Podman', buildKit: false }],
  ])('%s', async (_which, version, headers, expected) => {
    const { engine } = await engineThat({ 'GET /version': json(version), 'GET /_ping': ping(headers) });
    expect(await engine.about(signal)).toEqual({
      ...expected,
      version: version.Version,
      architecture: version.Arch,
    });
  });

  test('is asked for once; after an error, again', async () => {
    let up = false;
    const { engine, lines } = await engineThat({
      'GET /version': (...given) => (up ? json(PODMAN) : refused(500))(...given),
    });
    await expect(engine.about(signal)).rejects.toThrow(EngineError);
    up = true;
    await engine.about(signal);
    await engine.about(signal);
    expect(lines()).toEqual(['GET /version', 'GET /version']);
  });

  test('is not waited for once the signal is aborted', async () => {
    const { engine } = await engineThat({ 'GET /version': () => undefined });
    await expect(engine.about(AbortSignal.abort(new Error('enough')))).rejects.toThrow('enough');
    const stop = new AbortController();
    const asking = engine.about(stop.signal);
    stop.abort(new Error('stopped'));
    await expect(asking).rejects.toThrow('stopped');
  });
});

test('an engine that is not there is unavailable, by its address', async () => {
  const engine = dockerEngine({ kind: 'socket', path: '/nowhere/engine.sock' });
  const failed = { name: 'EngineError', reason: 'EngineUnavailable' };
  await expect(engine.about(signal)).rejects.toMatchObject(failed);
  await expect(engine.load(Readable.from([Buffer.from('a')]), signal)).rejects.toMatchObject(failed);
  await expect(engine.hasImage('a', signal)).rejects.toThrow(
    'container engine unix:///nowhere/engine.sock: ',
  );
});

describe('an image of the engine', () => {
  test.each([
    ['there', json({}), true],
    ['not there', refused(404), false],
  ])('is %s', async (_what, answer, expected) => {
    const { engine } = await engineThat({ 'GET /images/a:1/json': answer, 'DELETE /images/a:1': answer });
    expect(await engine.hasImage('a:1', signal)).toBe(expected);
    await engine.remove('a:1', signal);
  });

  test('is removed although it has other names', async () => {
    const { engine, asked } = await engineThat({ 'DELETE /images/a:1': json([]) });
    await engine.remove('a:1', signal);
    expect(asked).toEqual([{ line: 'DELETE /images/a:1', query: { force: 'true' }, body: '' }]);
  });

  test('is saved as it comes', async () => {
    const { engine } = await engineThat({
      'GET /images/a:1/get': (_request, response) => response.end('archive'),
    });
    expect(await text(await engine.save('a:1', signal))).toBe('archive');
  });

  test('is not saved on once the signal is aborted', async () => {
    const { engine } = await engineThat({
      'GET /images/a:1/get': (_request, response) => response.writeHead(200).write('begin'),
    });
    const stop = new AbortController();
    const archive = await engine.save('a:1', stop.signal);
    const read = text(archive);
    stop.abort();
    await expect(read).rejects.toMatchObject({ name: 'AbortError' });
  });

  test.each([
    ['hasImage', 500, 'broken', 'EngineFailed'],
    ['remove', 409, 'in use', 'EngineFailed'],
    ['save', 404, 'no such image', 'EngineFailed'],
    ['save', 500, 'write /var: no space left on device', 'EngineDiskFull'],
  ] as const)('%s throws what the engine answers: %i %s', async (method, status, message, reason) => {
    const answer = refused(status, message);
    const { engine } = await engineThat({
      'GET /images/a:1/json': answer,
      'DELETE /images/a:1': answer,
      'GET /images/a:1/get': answer,
    });
    await expect(engine[method]('a:1', signal)).rejects.toMatchObject({
      reason,
      message: expect.stringContaining(message),
    });
  });
});

describe('an archive', () => {
  test('is loaded as it comes', async () => {
    const { engine, asked } = await engineThat({ 'POST /images/load': progress({ stream: 'Loaded' }) });
    await engine.load(Readable.from([Buffer.from('arch'), Buffer.from('ive')]), signal);
    expect(asked.map(({ line, body }) => [line, body])).toEqual([['POST /images/load', 'archive']]);
  });

  test.each([
    ['a full disk', progress({ error: 'no space left on device' }), 'EngineDiskFull'],
    ['an error', progress({ status: 'reading' }, { error: 'invalid tar header' }), 'EngineFailed'],
    ['a refusal', refused(500, 'broken'), 'EngineFailed'],
    ['a connection that breaks', breaksOff, 'EngineFailed'],
  ])('that ends with %s is an error', async (_what, answer, reason) => {
    const { engine } = await engineThat({ 'POST /images/load': answer });
    await expect(engine.load(Readable.from([Buffer.from('a')]), signal)).rejects.toMatchObject({ reason });
  });

  test('that can not be read is an error of its own', async () => {
    async function* broken() {
      yield Buffer.from('a');
      throw new TypeError('the blob has another digest');
    }
    const { engine } = await engineThat({ 'POST /images/load': progress({}) });
    await expect(engine.load(broken(), signal)).rejects.toEqual(new TypeError('the blob has another digest'));
  });

  test('is not sent on once the signal is aborted, and is closed', async () => {
    const { engine } = await engineThat({});
    const stop = new AbortController();
    const closed = Promise.withResolvers<void>();
    async function* endless() {
      try {
        yield Buffer.from('a');
        stop.abort(new Error('enough'));
        for (;;) yield Buffer.alloc(1024);
      } finally {
        closed.resolve();
      }
    }
    await expect(engine.load(endless(), stop.signal)).rejects.toThrow('enough');
    await closed.promise;
  });
});

describe('a build', () => {
  const podman = { 'GET /version': json(PODMAN) };
  const docker = { 'GET /version': json(DOCKER), 'GET /_ping': ping() };
  const buildKit = { 'GET /version': json(DOCKER), 'GET /_ping': ping({ 'builder-version': '2' }) };
  const always = { t: 'shale.local/a:1', dockerfile: 'Containerfile', rm: 'true', forcerm: 'true' };
  const secrets = [
    { id: 'a', file: '.s/0' },
    { id: 'b', file: '.s/1' },
  ];
  const said = JSON.stringify(['id=a,src=.s/0', 'id=b,src=.s/1']);

  test.each<[string, Readonly<Record<string, Answer>>, Partial<EngineBuild>, object]>([
    ['no more than it needs', docker, {}, {}],
    ['arguments', docker, { buildArguments: { A: '1' } }, { buildargs: '{"A":"1"}' }],
    ['a platform', docker, { platform: 'linux/arm64' }, { platform: 'linux/arm64' }],
    ['images whose steps count', docker, { cacheFrom: ['b:1', 'c:1'] }, { cachefrom: '["b:1","c:1"]' }],
    ['secrets of Podman', podman, { secrets }, { secrets: said }],
    ['no secrets of Podman', podman, {}, {}],
    ['no secrets of Docker', docker, { secrets }, {}],
  ])('asks for %s', async (_what, about, build, query) => {
    const { engine, asked } = await engineThat({ ...about, 'POST /build': progress({ stream: 'done\n' }) });
    const output: string[] = [];
    await engine.build(aBuild(build), (piece) => output.push(piece), signal);
    expect(asked.at(-1)).toEqual({ line: 'POST /build', query: { ...always, ...query }, body: 'context' });
    expect(output).toEqual(['done\n']);
  });

  test('in a chroot is asked of Podman’s own API', async () => {
    const answers = { ...podman, 'POST /v4.0.0/libpod/build': progress({ stream: 'done\n' }) };
    const { engine, asked } = await engineThat(answers, { chroot: true });
    await engine.build(aBuild(), () => undefined, signal);
    expect(asked.at(-1)).toMatchObject({
      query: { isolation: 'chroot', outputformat: 'application/vnd.docker.distribution.manifest.v2+json' },
    });
  });

  const encoded = `${Buffer.from('installed\n').toString('base64')}\n`;

  test.each([
    ['as it is', docker, [{ stream: 'Step 1\n' }, { stream: encoded }], ['Step 1\n', encoded]],
    [
      'decoded under BuildKit',
      buildKit,
      [{ stream: 'Step 1\n' }, { stream: encoded }],
      ['Step 1\n', 'installed\n'],
    ],
    ['with nothing for a status', docker, [{ status: 'Pulling' }, { stream: 'b' }], ['', 'b']],
  ])('prints its output %s', async (_how, about, messages, printed) => {
    const { engine } = await engineThat({ ...about, 'POST /build': progress(...messages) });
    const output: string[] = [];
    await engine.build(aBuild(), (piece) => output.push(piece), signal);
    expect(output).toEqual(printed);
  });

  const failed = "The command '/bin/sh -c false' returned a non-zero code: 1";

  test.each<[string, Answer, object]>([
    ['a command', progress({ stream: 'a' }, { error: failed }), { name: 'StepFailed', message: failed }],
    ['a file that can not be read', refused(400, 'dockerfile parse error on line 1'), { name: 'StepFailed' }],
    ['a bad request', refused(400, 'no such parameter'), { reason: 'EngineFailed' }],
    ['a step of a broken engine', refused(500, 'exit status 1'), { reason: 'EngineFailed' }],
    [
      'a full disk',
      progress({ error: 'COPY failed: no space left on device' }),
      { reason: 'EngineDiskFull' },
    ],
    ['another error', progress({ error: 'toomanyrequests' }), { reason: 'EngineFailed' }],
    ['a lost connection', (_request, response) => response.destroy(), { reason: 'EngineUnavailable' }],
  ])('that fails by %s says so', async (_what, answer, expected) => {
    const { engine } = await engineThat({ ...docker, 'POST /build': answer });
    await expect(engine.build(aBuild(), () => undefined, signal)).rejects.toMatchObject(expected);
  });

  test('prints the first error, and throws it, whatever comes after it', async () => {
    const { engine } = await engineThat({
      ...docker,
      'POST /build': progress({ error: failed }, { error: 'then' }),
    });
    const output: string[] = [];
    const build = engine.build(aBuild(), (piece) => output.push(piece), signal);
    await expect(build).rejects.toEqual(new StepFailed(failed));
    expect(output[0]).toBe(`${failed}\n`);
  });

  test('ends once the signal is aborted, and the engine is left alone', async () => {
    const closed = Promise.withResolvers<void>();
    const { engine } = await engineThat({
      ...docker,
      'POST /build': (_request, response) => {
        response.once('close', closed.resolve);
        response.writeHead(200).write('{"stream":"Step 1"}\n');
      },
    });
    const stop = new AbortController();
    const build = engine.build(aBuild(), () => stop.abort(new Error('enough')), stop.signal);
    await expect(build).rejects.toThrow('enough');
    await closed.promise;
  });
});
