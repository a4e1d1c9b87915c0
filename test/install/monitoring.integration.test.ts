/**
 * Alerts and dashboard are read by nobody here: Prometheus' own tool checks them if it is installed, else what can be
 * checked without it.
 */
import { globSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parser } from '@prometheus-io/lezer-promql';
import { execa } from 'execa';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { BuildMetrics } from '../../builder/metrics.ts';
import { registerProcessMetrics } from '../../cluster/telemetry.ts';
import { PrometheusMetrics as DaemonMetrics } from '../../daemon/prometheus-metrics.ts';
import { RolloutMetrics } from '../../rollout/reports/metrics.ts';
import { ALERT_CASES, type AlertCase } from './alert-cases.ts';
import { isOnPath } from './on-path.ts';

const ROOT = path.join(import.meta.dirname, '../..');
const read = (file: string) => readFileSync(path.join(ROOT, file), 'utf8');
const COMPONENT = 'manifests/components/monitoring';

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

const rules = parse(read(`${COMPONENT}/alerts.yaml`)).spec as { readonly groups: unknown };
const groups = rules.groups as readonly { rules: readonly Alert[] }[];
const alerts = groups.flatMap(({ rules }) => rules);
const dashboard = JSON.parse(read(`${COMPONENT}/shale.json`)) as {
  readonly panels: readonly {
    readonly id: number;
    readonly type: string;
    readonly title: string;
    readonly description: string;
    readonly gridPos: Readonly<Record<'x' | 'y' | 'w' | 'h', number>>;
    readonly fieldConfig: {
      readonly defaults: {
        readonly unit: string;
        readonly thresholds?: { readonly steps: readonly object[] };
      };
    };
    readonly targets: readonly { readonly expr: string }[];
  }[];
};
const queries = [
  ...alerts.map(({ alert, expr }): [string, string] => [alert, expr]),
  ...dashboard.panels.flatMap(({ title, targets }) =>
    targets.map(({ expr }): [string, string] => [title, expr]),
  ),
];

test.each(queries)('%s: its query is PromQL', (_, query) => {
  // A variable of the dashboard stands in a string.
  const errors: string[] = [];
  parser.parse(query).iterate({
    enter: ({ type, from, to }) => {
      if (type.isError) errors.push(`at ${from}: ${query.slice(from, to + 10)}`);
    },
  });
  expect(errors).toEqual([]);
});

test.each(queries)('%s: its query asks for metrics that there are', (_, query) => {
  const known = new Set(['up', 'kube_daemonset_status_number_unavailable', ...ownMetrics()]);
  const asked = [...query.matchAll(/\b(?:shale|kube|process)_[a-z_]+|\bup\b/g)].map(([name]) =>
    name.replace(/_(?:bucket|count)$/, ''),
  );
  expect(asked).not.toEqual([]);
  expect(asked.filter((name) => !known.has(name))).toEqual([]);
});

test.each(alerts.map((alert): [string, Alert] => [alert.alert, alert]))(
  '%s says what it means, and where to read what to do',
  (name, { labels, annotations }) => {
    expect(labels['severity']).toMatch(/^(warning|critical)$/);
    expect(annotations['summary']).toBeTruthy();
    expect(annotations['description']).toMatch(/\.$/);
    expect(annotations['runbook_url']).toBe(`https://shale.dev/docs/runbooks#${name.toLowerCase()}`);
    expect(read('docs/runbooks.md')).toContain(`\n## ${name}\n`);
  },
);

test.each(dashboard.panels.map((panel) => [panel.title, panel] as const))(
  'panel %s says what it shows, and in what',
  (_, { description, fieldConfig }) => {
    expect(description).toMatch(/\.$/);
    expect(fieldConfig.defaults.unit).toBeTruthy();
  },
);

test('the dashboard begins with how far rollouts are, what holds them and what failed, and numbers have thresholds', () => {
  const [first, ...others] = dashboard.panels;
  expect(first?.title).toBe('Rollout progress');
  const about = (metric: string) =>
    dashboard.panels.filter((panel) => JSON.stringify(panel).includes(metric));
  expect(about('shale_operator_updates_held').map(({ title }) => title)).toEqual(['Held updates']);
  expect(others.slice(0, 3).map(({ title }) => title)).toEqual([
    'Failed nodes',
    'Held updates',
    'Stuck drains',
  ]);
  for (const { title, type, fieldConfig } of dashboard.panels) {
    if (type === 'timeseries') continue;
    expect(fieldConfig.defaults.thresholds?.steps.length, title).toBeGreaterThan(1);
  }
});

test('panels of the dashboard cover each other nowhere, and have a number of their own', () => {
  const cells = dashboard.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, index) => `${x + (index % w)} ${y + Math.floor(index / w)}`),
  );
  expect(new Set(cells).size).toBe(cells.length);
  expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length);
});

test('each runbook is of an alert', () => {
  const headings = [...read('docs/runbooks.md').matchAll(/^## (.+)$/gm)].map(([, heading]) => heading);
  expect(headings).toEqual(alerts.map(({ alert }) => alert));
});

test('each alert is tried when it should fire and when it should not', () => {
  for (const firing of [true, false]) {
    const tried = ALERT_CASES.filter(({ fires }) => (fires !== undefined) === firing);
    expect([...new Set(tried.map(({ alert }) => alert))]).toEqual(alerts.map(({ alert }) => alert));
  }
});

test.runIf(isOnPath('kubectl'))(
  'the alerts of a kustomization name the page of runbooks that is set',
  async () => {
    await using stack = new AsyncDisposableStack();
    const directory = await mkdtemp(path.join(tmpdir(), 'shale-runbooks-'));
    stack.defer(() => rm(directory, { recursive: true }));
    const relative = (component: string) =>
      path.relative(directory, path.join(ROOT, 'manifests/components', component));
    const [settings = ''] = /^apiVersion: v1\nkind: ConfigMap\n[^`]*/m.exec(read('docs/runbooks.md')) ?? [];
    await writeFile(path.join(directory, 'runbooks.yaml'), settings);
    const kustomization = {
      resources: ['runbooks.yaml'],
      components: ['monitoring', 'runbooks'].map(relative),
    };
    await writeFile(path.join(directory, 'kustomization.yaml'), stringify(kustomization));
    const { stdout } = await execa('kubectl', ['kustomize', directory]);
    const named = [...stdout.matchAll(/runbook_url: (.*)#\w+$/gm)].map(([, url]) => url);
    expect(named).toEqual(alerts.map(() => 'https://wiki.example.com/shale'));
    expect(stdout).not.toContain('name: shale-runbooks');
  },
);

describe.runIf(isOnPath('promtool'))('Prometheus (skipped where there is no promtool)', () => {
  let dir: string;
  beforeAll(async () => {
    dir = await mkdtemp(path.join(tmpdir(), 'shale-promtool-'));
    await writeFile(path.join(dir, 'rules.yaml'), stringify(rules));
  });
  afterAll(() => rm(dir, { recursive: true, force: true }));

  test('takes the rules', async () => {
    const { stdout } = await execa('promtool', ['check', 'rules', path.join(dir, 'rules.yaml')]);
    expect(stdout).toContain(`SUCCESS: ${alerts.length} rules found`);
  });

  test.each(
    ALERT_CASES.map((one): [string, AlertCase] => [
      `${one.alert} ${one.fires === undefined ? 'stays quiet about' : 'fires for'} ${one.of}`,
      one,
    ]),
  )('%s', async (name, one) => {
    const file = path.join(dir, `${ALERT_CASES.indexOf(one)}.yaml`);
    await writeFile(file, stringify(unitTest(name, one)));
    const { exitCode, stdout, stderr } = await execa('promtool', ['test', 'rules', file], { reject: false });
    expect({ exitCode, said: exitCode === 0 ? '' : stdout + stderr }).toEqual({ exitCode: 0, said: '' });
  });

  test.each([
    ['operator', new RolloutMetrics(() => new Map([['pools', 1]])).registry],
    ['builder', new BuildMetrics().registry],
    ['daemon', new DaemonMetrics().registry],
    ['process', ofProcess()],
  ])('has nothing to say against the metrics of the %s', async (_, registry) => {
    const { exitCode, stderr } = await execa('promtool', ['check', 'metrics'], {
      input: await registry.metrics(),
      reject: false,
    });
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  });
});

function ofProcess(): Registry {
  const registry = new Registry();
  registerProcessMetrics(registry);
  return registry;
}

/** @returns a file of `promtool test rules`. */
function unitTest(name: string, { alert, series, minutes, fires }: AlertCase): object {
  const annotations = alerts.find((one) => one.alert === alert)?.annotations;
  const expected =
    fires === undefined
      ? []
      : [{ exp_labels: fires.labels, exp_annotations: { ...annotations, summary: fires.summary } }];
  return {
    rule_files: ['rules.yaml'],
    tests: [
      {
        name,
        interval: '1m',
        input_series: Object.entries(series).map(([of, values]) => ({ series: of, values })),
        alert_rule_test: [{ alertname: alert, eval_time: `${minutes}m`, exp_alerts: expected }],
      },
    ],
  };
}

/** The names in the sources are the only list of metrics that there is. */
function ownMetrics(): string[] {
  const files = globSync('{builder,cluster,daemon,operator,rollout}/**/{*metrics,telemetry}.ts', {
    cwd: ROOT,
  });
  return files.flatMap((file) =>
    [...read(file).matchAll(/name: '((?:shale|process)_[a-z_]+)'/g)].map(([, name = '']) => name),
  );
}
