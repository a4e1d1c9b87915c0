/** A real Alertmanager says which alerts fire: silences and inhibition are its own. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import type { SettingFields } from '../../api/pool-settings/table.ts';
import { readAlerts } from '../../api/pool-settings/values.ts';
import { MemoryCluster } from '../../test/fixtures/fleet/memory-cluster.ts';
import { putNode, putPool } from '../../test/fixtures/fleet/pool-under-way.ts';
import { steppedOperator } from '../../test/fixtures/fleet/stepped-operator.ts';
import {
  type MonitoringServer,
  startAlertmanager,
  startPrometheus,
} from '../../test/fixtures/monitoring-servers.ts';
import { deadline, patience } from '../../test/fixtures/patience.ts';
import { type ScriptedServer, startScriptedServer } from '../../test/fixtures/scripted-server.ts';
import { isOnPath } from '../../test/install/on-path.ts';
import { createAuthority } from '../../x509/certificate.ts';
import { alertmanager, prometheus } from './endpoints.ts';

/** An outage of the whole site inhibits what is critical because of it. */
const CONFIG = {
  route: { receiver: 'nobody', group_wait: '0s' },
  receivers: [{ name: 'nobody' }],
  inhibit_rules: [
    { source_matchers: ['alertname="SiteDown"'], target_matchers: ['severity="critical"'], equal: [] },
  ],
};

let server: MonitoringServer;
const isInstalled = isOnPath('prometheus') && isOnPath('prometheus-alertmanager');

async function post(path: string, body: unknown): Promise<void> {
  const response = await fetch(new URL(`api/v2/${path}`, server.url), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: deadline(10_000),
  });
  expect(response.status, await response.text()).toBe(200);
}

/** @returns what holds a pool back that has these sets of matchers, one in a line. */
async function found(text: string): Promise<readonly string[]> {
  const hold = readAlerts(text.split('\n'));
  if (hold.kind !== 'named') throw new Error(`the hold is ${hold.kind}`);
  const ask = alertmanager(server);
  const answers = await Promise.all(hold.questions.map((question) => ask(question, deadline(10_000))));
  return answers.flat().toSorted();
}

describe.runIf(isInstalled)('an Alertmanager (skipped where it is not installed)', () => {
  beforeAll(async () => {
    server = await startAlertmanager(CONFIG);
    await post('alerts', [
      { labels: { alertname: 'Disk10', severity: 'critical', team: 'a"b' } },
      { labels: { alertname: 'Disk2,x', severity: 'warning', path: 'C:\\d' } },
      { labels: { severity: 'none' } },
    ]);
  });
  afterAll(() => server.stop());

  it.each<[string, readonly string[]]>([
    ['severity="critical"', ['Disk10']],
    ['{severity="critical"}', ['Disk10']],
    ['severity=~"critical|warning", alertname!="Disk10"', ['Disk2,x']],
    ['severity="critical", alertname="Disk2,x"', []],
    ['severity="critical"\nalertname="Disk2,x"', ['Disk10', 'Disk2,x']],
    // Anchored, as in Prometheus.
    ['alertname=~"Disk"', []],
    ['alertname=~"Disk\\d+"', ['Disk10']],
    ['alertname=~"Disk\\\\d+"', ['Disk10']],
    ['team="a\\"b"', ['Disk10']],
    ['path="C:\\\\d"', ['Disk2,x']],
    // A label that an alert lacks is an empty one.
    ['alertname="", severity!~"critical.*"', ['an alert without a name']],
    ['team!="", severity!="x",', ['Disk10']],
    ['alertname="Ünïcode"', []],
  ])('finds by %s', async (text, names) => {
    expect(await found(text)).toEqual(names);
  });

  it('is trusted by the CA of the flag alone', async () => {
    const authority = createAuthority('monitoring', new Date());
    const identity = authority.issueServer({ dns: ['localhost'], ipv4: ['127.0.0.1'] });
    const secure = await startAlertmanager(CONFIG, identity);
    onTestFinished(() => secure.stop());
    const dir = await mkdtemp(path.join(tmpdir(), 'shale-ca-'));
    onTestFinished(() => rm(dir, { recursive: true }));
    const caFile = path.join(dir, 'ca.crt');
    await writeFile(caFile, authority.caPem);
    const { url } = secure;
    expect(await alertmanager({ url, caFile })(['a="b"'], deadline(10_000))).toEqual([]);
    await writeFile(caFile, createAuthority('another', new Date()).caPem);
    for (const trusted of [{ url, caFile }, { url }])
      await expect(alertmanager(trusted)(['a="b"'], deadline(10_000))).rejects.toThrow(
        /^Alertmanager 127\.0\.0\.1:\d+: the server's certificate is signed by an authority that is not trusted/,
      );
  });

  it('says what it does not understand', async () => {
    await expect(found('alertname=~"("')).rejects.toThrow(
      /^Alertmanager 127\.0\.0\.1:\d+: it answers 400: .*error parsing regexp: missing closing \)/,
    );
  });
});

describe.runIf(isInstalled)(
  'a pool that alerts of a Prometheus hold back (skipped where it is not installed)',
  () => {
    /** What the target of the Prometheus exposes. */
    let metrics: string;
    let target: ScriptedServer;
    let source: MonitoringServer;
    let clock: number;
    let pass: () => Promise<string | undefined>;
    let isGranted: () => boolean;

    beforeAll(async () => {
      target = await startScriptedServer((_request, response) => response.end(metrics));
      server = await startAlertmanager(CONFIG);
      const alert = (alertname: string, expr: string, severity: string) => ({
        alert: alertname,
        expr,
        labels: { severity },
      });
      const each = '200ms';
      source = await startPrometheus(
        {
          global: { scrape_interval: each, scrape_timeout: each, evaluation_interval: each },
          rule_files: ['rules.json'],
          scrape_configs: [{ job_name: 'site', static_configs: [{ targets: [target.host] }] }],
          alerting: {
            alertmanagers: [{ path_prefix: '/prefix', static_configs: [{ targets: [server.url.host] }] }],
          },
        },
        {
          groups: [
            {
              name: 'site',
              rules: [
                alert('DiskFull', 'disk_used > 0.9', 'critical'),
                alert('SiteDown', 'site_down == 1', 'page'),
              ],
            },
          ],
        },
      );
    });
    afterAll(async () => {
      await source.stop();
      await server.stop();
      await target.stop();
    });

    /** A pool with a node that could start, in an operator that remembers nothing. */
    function start(shale: SettingFields): void {
      metrics = 'disk_used 0.95\n';
      clock = Date.now();
      const cluster = new MemoryCluster();
      putPool(cluster, 'worker', shale);
      putNode(cluster, 'worker', 'a', 1, clock);
      const monitoring = { askAlerts: alertmanager(server), askQueries: prometheus(source) };
      const operator = steppedOperator(cluster, () => clock, undefined, undefined, monitoring);
      isGranted = () => cluster.get(MachineConfigNodes, 'a')?.spec.grant !== undefined;
      pass = async () => {
        operator.catchUp();
        await operator.pools.reconcile('worker', deadline(10_000));
        const { status } = cluster.get(MachineConfigPools, 'worker') ?? {};
        const held = status?.conditions?.find(({ type }) => type === 'UpdatesHeld');
        return held?.status === 'True' ? held.message : undefined;
      };
    }

    const within = { timeout: patience(30_000), interval: 50 };
    const untilHeld = (): Promise<string | undefined> => vi.waitUntil(pass, within);
    const untilGranted = () =>
      vi.waitUntil(async () => {
        // What holds is asked again once it is old.
        if ((await pass()) !== undefined) clock += 30_000;
        return isGranted();
      }, within);

    it.each<[string, () => Promise<unknown>]>([
      [
        'is resolved',
        async () => {
          metrics = 'disk_used 0.5\n';
        },
      ],
      [
        'is inhibited',
        async () => {
          metrics = 'disk_used 0.95\nsite_down 1\n';
        },
      ],
      [
        'is silenced',
        () =>
          post('silences', {
            matchers: [{ name: 'alertname', value: 'DiskFull', isRegex: false, isEqual: true }],
            startsAt: new Date().toISOString(),
            endsAt: new Date(Date.now() + 3_600_000).toISOString(),
            createdBy: 'admin',
            comment: 'a test',
          }),
      ],
    ])('waits while an alert is firing, and starts once it %s', async (_how, end) => {
      start({ holdOnAlerts: ['severity="critical"'] });
      await vi.waitUntil(async () => (await found('severity="critical"')).length > 0, within);
      expect(await untilHeld()).toBe(
        'updates wait for alerts (spec.shale.holdOnAlerts): 1 alert is firing: DiskFull',
      );
      expect(isGranted()).toBe(false);
      await end();
      await untilGranted();
      expect(await pass()).toBeUndefined();
    });

    it('waits while a query has a result, and starts once it has none', async () => {
      start({ holdOnQueries: ['disk_used > 0.9'] });
      await vi.waitUntil(
        async () => (await prometheus(source)('disk_used > 0.9', deadline(10_000))).length > 0,
        within,
      );
      expect(await untilHeld()).toBe(
        'updates wait for queries (spec.shale.holdOnQueries): 1 query has a result: disk_used > 0.9',
      );
      expect(isGranted()).toBe(false);
      metrics = 'disk_used 0.5\n';
      await untilGranted();
    });
  },
);
