import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { deadline } from '../test/fixtures/patience.ts';
import { isOnPath } from '../test/install/on-path.ts';
import { prometheus } from './monitoring-endpoints.ts';

describe.runIf(isOnPath('prometheus'))('a Prometheus (skipped where it is not installed)', () => {
  let dir: string;
  let url: URL;
  let server: ChildProcessByStdio<null, null, Readable>;

  beforeAll(async () => {
    dir = await mkdtemp(path.join(tmpdir(), 'shale-prometheus-'));
    const config = path.join(dir, 'prometheus.yaml');
    await writeFile(config, '{}');
    server = spawn(
      'prometheus',
      [
        `--config.file=${config}`,
        `--storage.tsdb.path=${path.join(dir, 'data')}`,
        '--storage.tsdb.retention.time=1h',
        '--web.listen-address=127.0.0.1:0',
        '--web.route-prefix=/prefix',
      ],
      { stdio: ['ignore', 'ignore', 'pipe'] },
    );
    const lines = createInterface({ input: server.stderr, signal: deadline(60_000) });
    let address: string | undefined;
    for await (const line of lines) {
      address ??= /msg="Listening on" address=(\S+)/.exec(line)?.[1];
      if (line.includes('Server is ready')) break;
    }
    server.stderr.resume();
    url = new URL(`http://${address}/prefix/`);
  });
  afterAll(async () => {
    // Nothing that it has on its disk is of use.
    if (server.kill('SIGKILL')) await once(server, 'exit');
    await rm(dir, { recursive: true });
  });

  it.each<[string, readonly string[]]>([
    ['vector(1)', ['vector(1)']],
    ['vector(0)', ['vector(0)']],
    ['vector(1) > 2', []],
    ['absent(up{job="a+b & c"})', ['absent(up{job="a+b & c"})']],
    ['up == 0', []],
  ])('answers %s', async (query, found) => {
    expect(await prometheus({ url })(query, deadline(10_000))).toEqual(found);
  });

  it.each([
    [
      'up ==',
      /^Prometheus 127\.0\.0\.1:\d+: it refuses the query up ==: .*parse error: unexpected end of input/,
    ],
    ['1 < bool 2', /the result of 1 < bool 2 is a scalar: expected an instant vector/],
    ['up[5m]', /the result of up\[5m\] is a matrix: /],
    ['"text"', /is a string: /],
    ['vector(1) + on() group_left() up{a="1"', /parse error/],
  ])('has no answer to %s', async (query, why) => {
    await expect(prometheus({ url })(query, deadline(10_000))).rejects.toThrow(why);
  });
});
