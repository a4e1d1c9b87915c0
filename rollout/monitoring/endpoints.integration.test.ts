/** A real Prometheus answers the queries: its errors and kinds of results are its own. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type MonitoringServer, startPrometheus } from '../../test/fixtures/monitoring-servers.ts';
import { deadline } from '../../test/fixtures/patience.ts';
import { isOnPath } from '../../test/install/on-path.ts';
import { prometheus } from './endpoints.ts';

describe.runIf(isOnPath('prometheus'))('a Prometheus (skipped where it is not installed)', () => {
  let server: MonitoringServer;
  beforeAll(async () => {
    server = await startPrometheus();
  });
  afterAll(() => server.stop());

  it.each<[string, readonly string[]]>([
    ['vector(1)', ['vector(1)']],
    ['vector(0)', ['vector(0)']],
    ['vector(1) > 2', []],
    ['absent(up{job="a+b & c"})', ['absent(up{job="a+b & c"})']],
    ['up == 0', []],
  ])('answers %s', async (query, found) => {
    expect(await prometheus(server)(query, deadline(10_000))).toEqual(found);
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
    await expect(prometheus(server)(query, deadline(10_000))).rejects.toThrow(why);
  });
});
