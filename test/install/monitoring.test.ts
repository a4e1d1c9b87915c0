import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { parser } from '@prometheus-io/lezer-promql';
import { expect, test } from 'vitest';
import { parse } from 'yaml';

/** Alerts and dashboard are read by nobody here: what can be told without Prometheus and Grafana is told by these tests. */

const ROOT = path.join(import.meta.dirname, '../..');
const read = (file: string) => readFileSync(path.join(ROOT, file), 'utf8');
const COMPONENT = 'manifests/components/monitoring';

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

const groups = parse(read(`${COMPONENT}/alerts.yaml`)).spec.groups as readonly { rules: readonly Alert[] }[];
const alerts = groups.flatMap(({ rules }) => rules);
const dashboard = JSON.parse(read(`${COMPONENT}/shale.json`)) as {
  readonly panels: readonly {
    readonly title: string;
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
  const asked = [...query.matchAll(/\b(?:shale|kube)_[a-z_]+|\bup\b/g)].map(([name]) =>
    name.replace(/_bucket$/, ''),
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

test('each runbook is of an alert', () => {
  const headings = [...read('docs/runbooks.md').matchAll(/^## (.+)$/gm)].map(([, heading]) => heading);
  expect(headings).toEqual(alerts.map(({ alert }) => alert));
});

/** The names in the sources are the only list of metrics that there is. */
function ownMetrics(): string[] {
  const files = globSync('{builder,rollout}/**/prometheus-metrics.ts', { cwd: ROOT });
  return files.flatMap((file) =>
    [...read(file).matchAll(/name: '(shale_[a-z_]+)'/g)].map(([, name = '']) => name),
  );
}
